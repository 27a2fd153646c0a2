#include "core/magic.hpp"

#include <bit>

#include "core/error.hpp"

namespace kiln {

__extension__ typedef unsigned __int128 uint128;

MagicDivisor make_magic(std::uint32_t divisor, std::uint32_t max_dividend) {
  if (divisor == 0) fail(KILN_STATUS_BAD_PARAM, "divisor is 0; expected at least 1");
  MagicDivisor magic;
  magic.divisor = divisor;
  if (std::has_single_bit(divisor)) {
    magic.shift = static_cast<std::uint32_t>(std::countr_zero(divisor));
    return magic;
  }
  if (max_dividend < divisor) {  // always 0: mulhi(n, 1) is 0 for every 32-bit n
    magic.multiplier = 1;
    return magic;
  }
  // nc: the largest dividend in range that leaves remainder divisor - 1 (Warren, eq. 24a). The
  // smallest p with 2^p > nc * (d - 1 - (2^p - 1) mod d) gives m = (2^p + d - 1 - (2^p - 1) mod d)
  // / d.
  const std::uint64_t d = divisor;
  const std::uint64_t n1 = std::uint64_t{max_dividend} + 1;
  const std::uint64_t nc = n1 - n1 % d - 1;
  for (unsigned p = 32; p <= 64; ++p) {
    const auto power = static_cast<uint128>(1) << p;
    const auto delta = d - 1 - static_cast<std::uint64_t>((power - 1) % d);
    if (power <= static_cast<uint128>(nc) * delta) continue;
    const auto m = static_cast<std::uint64_t>((power + delta) / d);  // at most 33 bits
    magic.multiplier = static_cast<std::uint32_t>(m);
    magic.add = (m >> 32) != 0;
    // The addition form halves once by itself: (((n - t) >> 1) + t) is (n + t) >> 1.
    magic.shift = p - 32 - (magic.add ? 1 : 0);
    return magic;
  }
  fail(KILN_STATUS_INTERNAL_ERROR, "no magic multiplier for divisor ", divisor);
}

std::uint64_t WideMagicDivisor::divide(std::uint64_t n) const {
  if (multiplier == 0) return n >> shift;
  return static_cast<std::uint64_t>((static_cast<uint128>(n) * multiplier) >> 64) >> shift;
}

// With 2^(l-1) < d < 2^l and m = ceil(2^(63+l) / d): m < 2^64, and m d - 2^(63+l) < d < 2^l, so
// that for n < 2^63 the error n (m d - 2^(63+l)) / (d 2^(63+l)) stays below 1 / d.
WideMagicDivisor make_wide_magic(std::uint64_t divisor) {
  if (divisor == 0 || divisor >> 63)
    fail(KILN_STATUS_BAD_PARAM, "divisor is ", divisor, "; expected 1 to 2^63 - 1");
  WideMagicDivisor magic;
  magic.divisor = divisor;
  if (std::has_single_bit(divisor)) {
    magic.shift = static_cast<std::uint32_t>(std::countr_zero(divisor));
    return magic;
  }
  const auto bits = static_cast<std::uint32_t>(std::bit_width(divisor));
  const uint128 power = static_cast<uint128>(1) << (63 + bits);
  magic.multiplier = static_cast<std::uint64_t>((power + divisor - 1) / divisor);
  magic.shift = bits - 1;
  return magic;
}

}  // namespace kiln
