// Arithmetic of sizes.
#pragma once

#include <cstdint>
#include <limits>

namespace kiln {

// The largest value that kernels count in 32 bits.
inline constexpr std::int64_t limit32 = std::numeric_limits<std::int32_t>::max();

// a / b rounded up, for a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
// a rounded up to a multiple of b.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

}  // namespace kiln
