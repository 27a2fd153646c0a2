// Forward propagation from few input channels, and the data gradient of a layer with few output
// channels; channels-last, 16 bits. The reduction on the tensor cores runs over all source elements
// under a pixel's taps.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/tile/groups.hpp"

namespace kiln {

struct FewInputChannelsNhwcTile {
  static constexpr int warps = 8;  // of a block

  std::int64_t p = 0, q = 0;    // rows and columns of output pixels
  std::int64_t octets = 0;      // octets of output channels of a warp
  std::int64_t warps_n = 1;     // warps that share a block's output channels
  std::int64_t copy_bytes = 0;  // bytes of a copy of the source
  bool uneven_rows = false;     // rows of the source begin at any element
  std::int64_t pitch = 0;       // bytes from one row of the source to the next in shared memory
  std::int64_t stages = 0, stage_bytes = 0, shared_memory = 0;

  std::int64_t warps_p() const { return warps / warps_n; }
  std::int64_t channels() const { return warps_n * octets * octet; }
};

extern const Recipe<FewInputChannelsNhwcTile> few_input_channels_nhwc_mma;

}  // namespace kiln
