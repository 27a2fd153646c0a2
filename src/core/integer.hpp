// Arithmetic of sizes.
#pragma once

#include <cstdint>
#include <limits>

namespace kiln {

// What kernels count in 32 bits is no more than this.
inline constexpr std::int64_t limit32 = std::numeric_limits<std::int32_t>::max();

// The parts of size b, b > 0, that a takes; a >= 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
// The least multiple of b from a on.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

}  // namespace kiln
