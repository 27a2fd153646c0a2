// Estimates of kernels whose threads do chains of multiply-adds on operands from the caches, and of
// kernels that only move memory.
#include <algorithm>
#include <cmath>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln {
double direct_seconds(const DirectWork& work, const DeviceDescription& device) {
  const DirectConstants& fitted = fitted_of(device).direct;
  constexpr double resident_threads = 2048;
  const double slots = resident_threads * device.multiprocessors;
  const double rounds = std::max(1.0, std::ceil(work.threads / slots));
  const double waits = rounds * work.products * fitted.wait_clocks;
  const double issue = work.threads *
                       (fitted.output_instructions + work.products * fitted.product_instructions) /
                       (warp * issue_width * device.multiprocessors);
  return clocks_to_seconds(fitted.first_clocks + std::max(waits, issue), work.bytes, device);
}

double memory_bound_seconds(double bytes, const DeviceDescription& device) {
  return clocks_to_seconds(fitted_of(device).direct.first_clocks, bytes, device);
}

}  // namespace kiln
