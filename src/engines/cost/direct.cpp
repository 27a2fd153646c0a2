// Chains of multiply-adds on operands from the caches, and kernels that only move memory.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

// Not measured, but set so that the direct engines are the last resort: clocks from one product of
// a thread to its next, an access of cold memory, and instructions of a product, most of them index
// arithmetic; clocks of a launch.
constexpr double direct_wait = 500, direct_instructions = 24, direct_first_clocks = 1000;

}  // namespace

double direct_seconds(const DirectWork& work, const DeviceDescription& device) {
  constexpr double resident_threads = 2048;
  const double slots = resident_threads * device.multiprocessors;
  const double rounds = std::max(1.0, std::ceil(work.threads / slots));
  const double waits = rounds * work.products * direct_wait;
  const double issue = work.threads * work.products * direct_instructions /
                       (warp * issue_width * device.multiprocessors);
  return clocks_to_seconds(direct_first_clocks + std::max(waits, issue), work.bytes, device);
}

double memory_bound_seconds(double bytes, const DeviceDescription& device) {
  return clocks_to_seconds(direct_first_clocks, bytes, device);
}

}  // namespace kiln
