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

}  // namespace kiln
