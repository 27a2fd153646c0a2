// Forward propagation and data gradient of channels-last tensors with few channels a group. A
// thread has 16 bytes of channels, reads the source once into registers, and sums in the compute
// type.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

// Rows and columns of pixels of a thread; the most vectors of channels, and threads, of a block.
struct DepthwiseNhwcShape {
  std::int64_t p = 0, q = 0, lanes = 0, threads = 0;
};

// A shape laid on a problem.
struct DepthwiseNhwcTile {
  std::int64_t p = 0, q = 0;         // rows and columns of pixels of a thread
  std::int64_t vector = 0;           // channels of a thread
  std::int64_t lanes = 0, runs = 0;  // vectors of channels, and tiles of pixels, of a block
  std::int64_t min_blocks = 0;

  std::int64_t threads() const { return lanes * runs; }
  bool operator==(const DepthwiseNhwcTile&) const = default;
};

extern const Recipe<DepthwiseNhwcTile> depthwise_nhwc_fma;

}  // namespace kiln
