// Filter gradient of channels-last tensors of 16 bits with 1, 2, 4 or 8 channels a group. Warps
// walk down the rows of x and multiply on the tensor cores, with pixels as the reduction.
#pragma once

#include <cstdint>

#include "engines/conv/filter_gradient/filter_gradient.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct WgradDepthwiseNhwcMmaTile {
  FilterGradientTiles dw{};
  std::int64_t p = 0, columns = 0;  // rows of dy, and columns of dy in units of 16
  std::int64_t octets = 0;          // of channels, of a block
  std::int64_t slices = 1;          // warps that share the columns of an octet
  std::int64_t splits = 0;          // warps that share the taps of a row
  std::int64_t shared_memory = 0, resident = 0;

  std::int64_t warps() const { return octets * slices * splits; }
};

extern const Recipe<WgradDepthwiseNhwcMmaTile> wgrad_depthwise_nhwc_mma;

}  // namespace kiln
