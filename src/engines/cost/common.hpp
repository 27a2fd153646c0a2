// What the models of several families share: how many blocks a multiprocessor holds, how long all
// blocks of a launch take, and the constants that were fitted to the times of several families.
#pragma once

#include <algorithm>
#include <cmath>

#include "device/device.hpp"
#include "engines/cost/chips.hpp"

namespace kiln {

// Clocks to store 32 results one by one.
inline constexpr double scattered_store_clocks = 68;
// Multiply-adds of f32 a clock of a multiprocessor, by wgmma.
inline constexpr double warpgroup_rate = 1024;
// A copy of a row from which a thread always copies the same place, against a plain copy.
inline constexpr double row_copies_share = 0.548;
// Bytes a clock that the L2 cache brings to a multiprocessor, at most.
inline constexpr double most_cache_bytes = 64;

// How many blocks of so many bytes of shared memory fit on a multiprocessor.
int blocks_by_memory(double bytes, const DeviceDescription& device);
// The same of blocks of so many warps, whose threads have so many sums in registers.
int resident_blocks(double shared_memory, double thread_sums, double warps,
                    const DeviceDescription& device);

// Clocks of `blocks` blocks over the chip in clusters of `parts`, `resident` at once on a
// multiprocessor, of which each takes block(r) beside r - 1 others. The fullest multiprocessor sets
// the time. Blocks of the first round are dealt one to each; those of the last go where blocks end,
// which may be evenly, or all at once where all ended together: both have been seen, so the mean of
// both is taken.
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
