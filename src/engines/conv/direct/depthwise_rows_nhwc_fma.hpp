// Forward propagation and data gradient of channels-last tensors with one source channel a group,
// where channels come in no vectors of 16 bytes, and in three dimensions. A thread has two channels
// or one, and walks down rows of the source that it reads from memory.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

// Rows and columns of pixels of a thread.
struct DepthwiseRowsShape {
  std::int64_t p = 0, q = 0;
};

// A shape laid on a problem.
struct DepthwiseRowsTile {
  DepthwiseRowsShape shape;
  std::int64_t vector = 0;           // channels of a thread
  std::int64_t lanes = 0, runs = 0;  // vectors of channels, and tiles of pixels, of a block
  std::int64_t channel_tiles = 0;
  bool weights_kept = false;  // in registers
  std::int64_t shared_memory = 0, resident = 0;

  std::int64_t threads() const { return lanes * runs; }
};

extern const Recipe<DepthwiseRowsTile> depthwise_rows_nhwc_fma;

}  // namespace kiln
