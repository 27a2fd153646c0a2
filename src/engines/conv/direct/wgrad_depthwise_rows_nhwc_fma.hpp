// Filter gradient of channels-last tensors with one channel of x a group, where channels come in no
// vectors of 16 bytes, and in three dimensions. A thread has two channels or one, walks down rows
// of x that it reads from memory, and keeps the sums of a plane of the filter in registers.
#pragma once

#include <cstdint>

#include "engines/conv/filter_gradient/filter_gradient.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct WgradDepthwiseRowsTile {
  FilterGradientTiles dw{};
  std::int64_t vector = 0;           // channels of dy of a thread
  std::int64_t p = 0, q = 0;         // rows and columns of pixels of dy in a unit
  std::int64_t lanes = 0, runs = 0;  // vectors of channels of a block; threads for each
  std::int64_t min_blocks = 0;       // on a multiprocessor
  std::int64_t own = 0;              // bytes of shared memory before the block's own sums
  std::int64_t shared_memory = 0;
};

extern const Recipe<WgradDepthwiseRowsTile> wgrad_depthwise_rows_nhwc_fma;

}  // namespace kiln
