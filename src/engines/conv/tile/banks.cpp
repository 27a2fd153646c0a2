#include "engines/conv/tile/banks.hpp"

#include <algorithm>

namespace kiln {

std::int64_t bank_accesses(const std::array<std::int64_t, 32>& words) {
  // A list for each bank of lanes whose words it gives, each word once: the last lane of a bank,
  // and the one before each lane.
  constexpr std::int8_t none = -1;
  std::array<std::int8_t, 32> last{}, before{}, count{};
  last.fill(none);
  std::int8_t most = 0;
  for (std::size_t lane = 0; lane < words.size(); ++lane) {
    const auto bank = static_cast<std::size_t>(words[lane] & 31);
    std::int8_t other = last[bank];
    while (other != none && words[static_cast<std::size_t>(other)] != words[lane])
      other = before[static_cast<std::size_t>(other)];
    if (other != none) continue;
    before[lane] = last[bank];
    last[bank] = static_cast<std::int8_t>(lane);
    most = std::max(most, ++count[bank]);
  }
  return most;
}

}  // namespace kiln
