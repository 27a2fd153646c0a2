// Wavefronts of shared memory, compared with the set of words that each bank gives.
#include "engines/conv/tile/banks.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <set>

using namespace kiln;

BOOST_AUTO_TEST_SUITE(banks)

BOOST_AUTO_TEST_CASE(a_read_takes_as_many_accesses_as_a_bank_has_words) {
  std::mt19937 random(8);
  std::set<std::int64_t> seen;
  for (int turn = 0; turn < 3000; ++turn) {
    const std::int64_t range = std::int64_t{1} << turn % 12, step = 1 << turn % 7;
    std::array<std::int64_t, 32> words{};
    std::map<std::int64_t, std::set<std::int64_t>> of_bank;
    for (std::int64_t& word : words) {
      word = std::uniform_int_distribution<std::int64_t>(0, range)(random) * step;
      of_bank[word % 32].insert(word);
    }
    std::size_t most = 0;
    for (const auto& [bank, its] : of_bank) most = std::max(most, its.size());
    BOOST_TEST_REQUIRE(bank_accesses(words) == static_cast<std::int64_t>(most));
    seen.insert(bank_accesses(words));
  }
  BOOST_TEST(seen.size() > 20);
}

BOOST_AUTO_TEST_SUITE_END()
