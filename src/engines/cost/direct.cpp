// Chains of multiply-adds on operands from the caches, and kernels that only move memory.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

// Clocks from one product of a thread to its next, an access of cold memory (not measured, but set
// so that the direct engines are chosen last). From an H200's times of depthwise layers of 9 to 31
// products: instructions of a product and of an output, most of them index arithmetic; clocks of a
// launch.
constexpr double direct_wait = 500, direct_instructions = 34, direct_output = 280,
                 direct_first_clocks = 1000;

}  // namespace

double direct_seconds(const DirectWork& work, const DeviceDescription& device) {
  constexpr double resident_threads = 2048;
  const double slots = resident_threads * device.multiprocessors;
  const double rounds = std::max(1.0, std::ceil(work.threads / slots));
  const double waits = rounds * work.products * direct_wait;
  const double issue = work.threads * (direct_output + work.products * direct_instructions) /
                       (warp * issue_width * device.multiprocessors);
  return clocks_to_seconds(direct_first_clocks + std::max(waits, issue), work.bytes, device);
}

double memory_bound_seconds(double bytes, const DeviceDescription& device) {
  return clocks_to_seconds(direct_first_clocks, bytes, device);
}

}  // namespace kiln
