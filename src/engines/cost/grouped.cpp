// Small groups on the tensor cores: tiles that are read from memory once and, from shared memory,
// once a tap.
#include <algorithm>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

// By an H200's times: wavefronts and products go on beside each other, and of the rates of both so
// much is reached, with so many warps on a multiprocessor.
constexpr double share = 0.48, enough_warps = 12;
constexpr double first_clocks = 3000;  // of a block: the filter, and the first tile's way

}  // namespace

double grouped_seconds(const GroupedWork& work, const DeviceDescription& device) {
  const double busy =
      std::clamp(work.blocks * work.warps / (enough_warps * device.multiprocessors), 1e-3, 1.0);
  const double clocks =
      std::max(work.wavefronts, work.products * product_clocks / issue_width) / share;
  return clocks_to_seconds(first_clocks + clocks / device.multiprocessors / busy,
                           work.bytes / work.memory_share / busy, device);
}

}  // namespace kiln
