// Division by a constant of a launch as a multiplication and a shift.
//
// After H. S. Warren, Hacker's Delight (2nd ed.), chapter 10, "Unsigned Division by Divisors >= 1",
// with the bound on the dividend made explicit: knowing that n <= max_dividend often saves the
// extra addition that a full 32-bit range would need.
#pragma once

#include <cstdint>

namespace kiln {

// n / divisor for every n in [0, max_dividend]:
//   multiplier == 0           n >> shift                                  (powers of two)
//   !add                      mulhi(n, multiplier) >> shift
//   add                       t = mulhi(n, multiplier); (((n - t) >> 1) + t) >> shift
struct MagicDivisor {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 0;
  std::uint32_t shift = 0;
  bool add = false;

  std::uint32_t divide(std::uint32_t n) const {
    if (multiplier == 0) return n >> shift;
    const auto t = static_cast<std::uint32_t>((std::uint64_t{n} * multiplier) >> 32);
    return add ? (((n - t) >> 1) + t) >> shift : t >> shift;
  }

  friend bool operator==(const MagicDivisor&, const MagicDivisor&) = default;
};

// divisor >= 1. Throws Error(BAD_PARAM) for 0.
MagicDivisor make_magic(std::uint32_t divisor, std::uint32_t max_dividend = 0xffffffffu);

// The same for 64-bit dividends below 2^63, for which a rounded-up multiplier is always exact:
//   multiplier == 0           n >> shift                                  (powers of two)
//   otherwise                 mulhi64(n, multiplier) >> shift
struct WideMagicDivisor {
  std::uint64_t divisor = 1;
  std::uint64_t multiplier = 0;
  std::uint32_t shift = 0;

  std::uint64_t divide(std::uint64_t n) const;

  friend bool operator==(const WideMagicDivisor&, const WideMagicDivisor&) = default;
};

// divisor in [1, 2^63). Throws Error(BAD_PARAM) otherwise.
WideMagicDivisor make_wide_magic(std::uint64_t divisor);

}  // namespace kiln
