// Small groups on the tensor cores: a tile is read from memory once, and from shared memory once
// for each tap.
#include <algorithm>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

// From an H200's times: wavefronts and products overlap, and this share of either rate is reached
// with so many warps on a multiprocessor.
constexpr double share = 0.48, enough_warps = 12;
constexpr double first_clocks = 3000;  // clocks of a block: loading the filter and the first tile

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
