// How the depthwise engines of channels-last tensors lay threads along channels.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kiln {

// How many vectors of channels neighbouring threads take: a number that leaves none idle and makes
// accesses contiguous, where the number of vectors allows it.
inline std::int64_t depthwise_lanes(std::int64_t vectors, std::int64_t most = 32) {
  most = std::min(most, vectors);
  for (std::int64_t lanes = most; 3 * lanes >= most; --lanes)
    if (vectors % lanes == 0) return lanes;
  return most;
}

// A block's size, and how many blocks a multiprocessor should hold, for threads that need so many
// registers besides those of addresses.
struct DepthwiseBlock {
  std::int64_t threads, min_blocks;
};
constexpr DepthwiseBlock depthwise_block(std::int64_t registers) {
  if (registers <= 110) return {256, 2};
  return registers <= 130 ? DepthwiseBlock{128, 3} : DepthwiseBlock{128, 2};
}

}  // namespace kiln
