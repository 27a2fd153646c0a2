// Shared parts of the models: how many blocks a multiprocessor holds, and how long all blocks of a
// launch take.
#pragma once

#include <algorithm>
#include <cmath>

#include "device/device.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/chips.hpp"

namespace kiln {

// Multiply-adds of f32 (TF32) that a multiprocessor does in a clock with wgmma.
inline constexpr double warpgroup_rate = 1024;
// The most bytes a clock that L2 delivers to a multiprocessor.
inline constexpr double most_cache_bytes = 64;

// How many blocks of `bytes` bytes of shared memory fit on a multiprocessor.
int blocks_by_memory(double bytes, const DeviceDescription& device);
// The same, limited also by registers: a block has `warps` warps, and each thread thread_sums
// accumulators.
int resident_blocks(double shared_memory, double thread_sums, double warps,
                    const DeviceDescription& device);

// Clocks of a multiprocessor for the products of a fragment by mma.sync, by `threads` threads of
// the shape's sums. product: clocks of a scheduler for a product, whose sums are 4 in each of 32
// lanes.
inline double fragment_clocks(const FragmentShape& shape, int threads, double product) {
  constexpr double product_sums = 4, schedulers = 4;
  return shape.thread_m * shape.thread_n / product_sums * product * threads / (warp * schedulers);
}

// Clocks of `blocks` blocks in clusters of `parts`, with `resident` blocks on a multiprocessor;
// block(r) is the clocks of a block that shares its multiprocessor with r - 1 others. The fullest
// multiprocessor sets the time. Blocks of the first round are dealt evenly; those of the last round
// start where blocks end, which may be evenly or on one multiprocessor: both were measured, so the
// mean is taken.
template <class Block>
double rounds_clocks(double blocks, int parts, int resident, const DeviceDescription& device,
                     const Block& block) {
  const double places = cluster_places(parts, resident, device);
  const double alone = std::max(1.0, std::ceil(blocks / cluster_places(parts, 1, device)));
  if (blocks <= places * resident) return block(std::min<double>(alone, resident));
  const double most = std::max<double>(std::ceil(blocks / places), resident + 1);
  const double whole = std::floor(most / resident), rest = most - whole * resident;
  const double even = whole * block(resident) + (rest > 0 ? block(rest) : 0);
  return (even + std::ceil(blocks / (places * resident)) * block(resident)) / 2;
}

}  // namespace kiln
