// Filter gradient of channels-last tensors with few channels a group. A thread keeps the sums of
// all taps of a few rows of the filter in registers; with workspace, all blocks of the chip share
// the pixels.
#pragma once

#include <cstdint>

#include "engines/conv/filter_gradient/filter_gradient.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct WgradDepthwiseNhwcFmaTile {
  FilterGradientTiles dw{};
  std::int64_t vector = 0;       // channels of dy of a thread
  std::int64_t p = 1, q = 0;     // rows and columns of pixels of dy in a unit
  std::int64_t filter_rows = 0;  // rows of the filter of a thread
  std::int64_t lanes = 0;        // vectors of channels of a block
  std::int64_t runs = 0;         // threads that share the units of a vector of channels
  std::int64_t min_blocks = 0;
  std::int64_t shared_memory = 0;
};

extern const Recipe<WgradDepthwiseNhwcFmaTile> wgrad_depthwise_nhwc_fma;

}  // namespace kiln
