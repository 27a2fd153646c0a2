// How the depthwise engines of channels-last tensors lay threads along channels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/integer.hpp"

namespace kiln {

// The number of neighboring threads along vectors of channels: the largest divisor of `vectors`
// that is not much less than `most`, so that no thread is idle; else `most`.
inline std::int64_t depthwise_lanes(std::int64_t vectors, std::int64_t most = 32) {
  most = std::min(most, vectors);
  for (std::int64_t lanes = most; 3 * lanes >= most; --lanes)
    if (vectors % lanes == 0) return lanes;
  return most;
}

// The same where vectors have any alignment, so that a block takes as many of them as it can: those
// of all blocks are equal but for a rest.
inline std::int64_t even_lanes(std::int64_t vectors, std::int64_t most) {
  return ceil_div(vectors, ceil_div(vectors, most));
}

// The size of a block, and the number of blocks on a multiprocessor, for threads that need
// `registers` registers besides those for addresses.
struct DepthwiseBlock {
  std::int64_t threads, min_blocks;
};
constexpr DepthwiseBlock depthwise_block(std::int64_t registers) {
  if (registers <= 110) return {256, 2};
  return registers <= 130 ? DepthwiseBlock{128, 3} : DepthwiseBlock{128, 2};
}

}  // namespace kiln
