// Estimates of small groups on the tensor cores: a tile is read from memory once, and from shared
// memory once for each tap.
#include <algorithm>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/fitted.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
double grouped_seconds(const GroupedWork& work, const DeviceDescription& device) {
  const GroupedConstants& fitted = fitted_of(device).grouped;
  const double busy = std::clamp(
      work.blocks * work.warps / (fitted.enough_warps * device.multiprocessors), 1e-3, 1.0);
  const double clocks =
      std::max(work.wavefronts, work.products * product_clocks / issue_width) / fitted.rate_share;
  return clocks_to_seconds(fitted.first_clocks + clocks / device.multiprocessors / busy,
                           work.bytes / work.memory_share / busy, device);
}

double grouped_halo_seconds(const GroupedHaloWork& work, const DeviceDescription& device) {
  const GroupedConstants& fitted = fitted_of(device).grouped;
  constexpr double line_clocks = 2.3, clock_bytes = 36;  // of the copy engine, in a clock
  const double beside =
      std::clamp(std::ceil(work.blocks / device.multiprocessors), 1.0, work.resident);
  const double computed = beside * work.warps *
                          std::max(work.wavefronts, work.products * product_clocks / issue_width) /
                          fitted.halo_rate_share;
  const double copied = work.lines * std::max(line_clocks, work.line_bytes / clock_bytes);
  const double tile = std::max(computed + fitted.halo_tile_clocks, beside * copied);
  const double rounds = std::ceil(work.blocks / (beside * device.multiprocessors));
  return clocks_to_seconds(fitted.halo_first_clocks + rounds * work.tiles * tile,
                           work.bytes / fitted.halo_memory_share, device);
}

}  // namespace kiln
