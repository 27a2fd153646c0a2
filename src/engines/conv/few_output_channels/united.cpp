#include "engines/conv/few_output_channels/united.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/text.hpp"

namespace kiln {
namespace {

constexpr const char* axis[] = {"depth", "height", "width"};

// Sets dimension i of `whole`, the phase that covers the taps of all phases. Returns whether any
// phase has a tap.
bool unite(const Gather& gather, int i, Gather::Phase& whole) {
  bool any = false;
  std::int64_t lowest = 0, highest = 0;  // the range of source positions of pixel 0's taps
  for (const Gather::Phase& phase : gather.phases) {
    whole.pixels[i] = std::max(whole.pixels[i], phase.pixels[i]);
    if (phase.taps[i] == 0) continue;
    const std::int64_t last = phase.origin[i] + (phase.taps[i] - 1) * gather.step[i];
    const auto [low, high] = std::minmax(phase.origin[i], last);
    lowest = any ? std::min(lowest, low) : low;
    highest = any ? std::max(highest, high) : high;
    any = true;
  }
  whole.origin[i] = gather.step[i] > 0 ? lowest : highest;
  whole.taps[i] = any ? (highest - lowest) / std::abs(gather.step[i]) + 1 : 0;
  return any;
}

}  // namespace

std::variant<UnitedGather, Refusal> unite_phases(const Gather& gather) {
  UnitedGather out;
  out.gather = gather;
  out.reduction = gather.channels * gather.most_taps();
  const Gather::Phase& most = gather.phases.front();
  if (most.tap_count() == 0) return Refusal{"no tap of the filter meets the input"};
  out.taps_in_row = most.taps[2];
  if (gather.phases.size() == 1) return out;

  Spatial counts{};
  for (const Gather::Phase& phase : gather.phases)
    for (int i = 0; i < 3; ++i) counts[i] = std::max(counts[i], phase.position[i] + 1);
  if (counts[0] > 1)
    return Refusal{cat("a data gradient of ", counts[0], " phases along the depth; expected 1")};
  Gather::Phase whole;
  for (int i = 0; i < 3; ++i) {
    if (counts[i] > 1 && std::abs(gather.step[i]) != 1)
      return Refusal{cat("the taps of a phase lie ", std::abs(gather.step[i]),
                         " pixels apart along the ", axis[i], "; expected 1")};
    if (!unite(gather, i, whole)) return Refusal{"no tap of the filter meets the input"};
  }
  std::vector<Gather::Phase>& phases = out.gather.phases;
  std::sort(phases.begin(), phases.end(),
            [](const Gather::Phase& a, const Gather::Phase& b) { return a.position < b.position; });
  out.row_phases = counts[1], out.column_phases = counts[2];
  out.taps_in_row = 0;
  for (std::int64_t i = 0; i < out.column_phases; ++i)
    out.taps_in_row += phases[static_cast<std::size_t>(i)].taps[2];
  out.gaps = std::any_of(phases.begin(), phases.end(), [&](const Gather::Phase& phase) {
    return phase.taps[1] != whole.taps[1];
  });
  phases.insert(phases.begin(), whole);
  return out;
}

}  // namespace kiln
