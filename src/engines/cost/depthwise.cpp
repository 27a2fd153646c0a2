// Threads that slide along rows on the FMA units.
#include <algorithm>

#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

// Of a thread that slides along a row: against one multiply-add a clock and lane, by the f32 and
// f64 data gradients of the paper's L1; and where channels lie innermost, by the same in NHWC.
constexpr double sliding_share = 0.75, sliding_waiting_warps = 2.4, sliding_channels_inner = 1.6,
                 sliding_narrow = 1.4, sliding_step_clocks = 320;

// Not measured, but set so that sliding windows are not for problems of a few microseconds: clocks
// of each block.
constexpr double sliding_first_clocks = 2000;

}  // namespace

double depthwise_fma_seconds(const SlidingWork& work, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  constexpr int resident = 2;
  const double warps = work.threads / warp;
  const bool f64 = work.type == KILN_DATA_DOUBLE, narrow = size_of(work.type) == 2;
  const double lanes = f64 ? chip.f64 : chip.f32;
  const double once = sliding_first_clocks + work.steps * sliding_step_clocks +
                      work.products * work.threads / lanes / sliding_share *
                          (work.channels_inner ? sliding_channels_inner : 1) *
                          (narrow ? sliding_narrow : 1);
  const auto block = [&](double beside) {
    return beside * once * (1 + sliding_waiting_warps / (beside * warps));
  };
  return clocks_to_seconds(rounds_clocks(work.blocks, 1, resident, device, block), work.bytes,
                           device);
}

}  // namespace kiln
