// Forward propagation and data gradient of channels-last tensors of 16 bits whose groups have 2, 4,
// 8 or 16 channels. The reduction of a tensor core product is the channels of a group at several
// taps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/integer.hpp"
#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"

namespace kiln {

struct GroupedNhwcTile {
  std::int64_t p = 0, q = 0;  // rows and columns of output pixels
  std::int64_t octets = 0;    // octets of channels
  std::int64_t places = 0;    // pixels of the source's halo, in the largest phase
  std::int64_t shared_memory = 0;

  std::int64_t warps_p() const { return ceil_div(p * q, warp_pixels); }
  std::int64_t threads() const { return 32 * warps_p() * (octets / warp_octets); }
  std::int64_t min_blocks() const { return std::max<std::int64_t>(512 / threads(), 1); }
  std::int64_t stage_bytes() const { return places * (octets + 1) * channel_vector_bytes; }
};

extern const Recipe<GroupedNhwcTile> grouped_nhwc_mma;

}  // namespace kiln
