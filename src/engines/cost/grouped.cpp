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

}  // namespace kiln
