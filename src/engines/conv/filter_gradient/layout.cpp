#include "engines/conv/filter_gradient/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kiln {

bool in_pairs(const Gather& gather) {
  const auto even = [](std::int64_t stride) { return stride % 2 == 0; };
  return gather.w_channel == 1 && even(gather.w_row) &&
         std::all_of(gather.w_tap.begin(), gather.w_tap.end(), even) &&
         even(gather.phases.front().w_first);
}

bool taps_side_by_side(const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  for (std::size_t i = 0; i < 3; ++i)
    if (phase.taps[i] > 1 && gather.w_tap[i] < gather.w_channel) return true;
  return false;
}

}  // namespace kiln
