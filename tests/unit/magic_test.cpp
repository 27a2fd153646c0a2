// Division by a constant of a launch: for every divisor up to 2^16 at all dividends at which a
// wrong quotient would appear first, and for random pairs of 32 bits.
#include "core/magic.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>

#include "core/error.hpp"

namespace {

using kiln::MagicDivisor;
using kiln::make_magic;

constexpr std::uint32_t largest = 0xffffffffu;

bool exact(const MagicDivisor& magic, std::uint32_t n) {
  return magic.divide(n) == n / magic.divisor;
}

// Checks the dividends around the first and last steps. floor(n m / 2^p) and floor(n / d) are step
// functions that can differ only next to a step. The error n (m d - 2^p) / (d 2^p) grows with n, so
// if the last steps are exact, those before are too.
bool exact_at_boundaries(const MagicDivisor& magic, std::uint32_t max_dividend) {
  const std::uint32_t d = magic.divisor;
  const std::uint32_t last_step = max_dividend - max_dividend % d;
  for (std::uint32_t step : {0u, d, last_step - std::min(last_step, d), last_step})
    for (std::int64_t offset = -1; offset <= 1; ++offset) {
      const std::int64_t n = std::int64_t{step} + offset;
      if (n >= 0 && n <= max_dividend && !exact(magic, static_cast<std::uint32_t>(n))) return false;
    }
  return exact(magic, max_dividend) && exact(magic, max_dividend / 2);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(magic)

BOOST_AUTO_TEST_CASE(every_divisor_to_65536_at_every_boundary) {
  for (std::uint32_t d = 1; d <= 1u << 16; ++d)
    for (std::uint32_t bound : {largest, 0x7fffffffu, 0x80000000u, 1u << 20, d - 1, d, d + 1}) {
      const MagicDivisor magic = make_magic(d, bound);
      if (!exact_at_boundaries(magic, bound)) BOOST_FAIL("divisor " << d << " to " << bound);
    }
}

BOOST_AUTO_TEST_CASE(random_pairs) {
  std::mt19937 random(2014);
  for (int i = 0; i < 2'000'000; ++i) {
    // Divisors of every magnitude, not only large ones.
    const std::uint32_t d = std::max<std::uint32_t>(1, random() >> random() % 32);
    const std::uint32_t n = random();
    if (!exact(make_magic(d), n)) BOOST_FAIL(n << " / " << d);
    const std::uint32_t bound = std::max(n, static_cast<std::uint32_t>(random()));
    if (!exact(make_magic(d, bound), n)) BOOST_FAIL(n << " / " << d << " to " << bound);
  }
}

BOOST_AUTO_TEST_CASE(every_dividend_of_small_ranges) {
  for (std::uint32_t d : {1u, 2u, 3u, 5u, 7u, 11u, 25u, 56u, 81u, 121u, 641u, 3136u, 13924u})
    for (std::uint32_t bound : {100u, 4095u, 100'000u}) {
      const MagicDivisor magic = make_magic(d, bound);
      for (std::uint32_t n = 0; n <= bound; ++n)
        if (!exact(magic, n)) BOOST_FAIL(n << " / " << d);
    }
}

BOOST_AUTO_TEST_CASE(known_values) {
  // Hacker's Delight, table 10-2: unsigned division by 3, 5 and 7, the last with the addition.
  BOOST_TEST(make_magic(3).multiplier == 0xaaaaaaabu);
  BOOST_TEST(make_magic(3).shift == 1u);
  BOOST_TEST(make_magic(5).multiplier == 0xcccccccdu);
  BOOST_TEST(make_magic(5).shift == 2u);
  BOOST_TEST(make_magic(7).multiplier == 0x24924925u);
  BOOST_TEST(make_magic(7).add);
  BOOST_TEST(make_magic(64).multiplier == 0u);
  BOOST_TEST(make_magic(64).shift == 6u);
}

BOOST_AUTO_TEST_CASE(a_bound_saves_the_addition) {
  BOOST_TEST(make_magic(7).add);
  BOOST_TEST(!make_magic(7, 0x7fffffffu).add);
}

BOOST_AUTO_TEST_CASE(wide_divisors) {
  constexpr std::uint64_t largest_wide = (std::uint64_t{1} << 63) - 1;
  std::mt19937_64 random(1989);
  const auto check = [](std::uint64_t d, std::uint64_t n) {
    if (kiln::make_wide_magic(d).divide(n) != n / d) BOOST_FAIL(n << " / " << d);
  };
  for (std::uint64_t d = 1; d <= 1u << 16; ++d) {
    const std::uint64_t last_step = largest_wide - largest_wide % d;
    for (std::uint64_t n :
         {std::uint64_t{0}, d - 1, d, d + 1, last_step - 1, last_step, largest_wide})
      check(d, n);
  }
  for (int i = 0; i < 1'000'000; ++i)
    check(std::max<std::uint64_t>(1, random() >> (1 + random() % 63)), random() >> 1);
}

BOOST_AUTO_TEST_CASE(divisors_out_of_range_are_refused) {
  BOOST_CHECK_THROW(make_magic(0), kiln::Error);
  BOOST_CHECK_THROW(kiln::make_wide_magic(0), kiln::Error);
  BOOST_CHECK_THROW(kiln::make_wide_magic(std::uint64_t{1} << 63), kiln::Error);
}

BOOST_AUTO_TEST_SUITE_END()
