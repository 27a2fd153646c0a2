#include "engines/conv/tile/banks.hpp"

#include <algorithm>

namespace kiln {

std::int64_t bank_accesses(std::array<std::int64_t, 32> words) {
  constexpr std::int64_t banks = 32;
  std::sort(words.begin(), words.end());
  const auto last = std::unique(words.begin(), words.end());
  std::array<std::int64_t, banks> of_bank{};
  for (auto word = words.begin(); word != last; ++word)
    ++of_bank[static_cast<std::size_t>(*word % banks)];
  return *std::max_element(of_bank.begin(), of_bank.end());
}

}  // namespace kiln
