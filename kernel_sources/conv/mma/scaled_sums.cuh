// Sums of f32 by the tensor cores on their way out. In three products (SPLIT) their operands were
// scaled (tf32_split.cuh), and where an infinity met the rest of a number, or something scaled
// overflowed, a sum is NaN or infinite that need not be. In one product the tensor cores read a NaN
// whose upper bits are an infinity's as that infinity. So with CHECKED a sum that is not finite,
// which is rare, is added up once more by its definition.
#pragma once

#include "target/kernel.cuh"
#include "target/math.cuh"

constexpr float SPLIT_SCALE = 0x1p24f, SPLIT_UNSCALE = 0x1p-48f;  // of operands, of sums
static_assert(CHECKED || !SPLIT);

// Scales sums back; whether all that exist, those of the bits in `existing`, are finite (and, if
// scaled, far enough from the largest number, should an overflow have ended there).
template <int COUNT>
device_inline bool scale_back(compute_t (&sums)[COUNT], u32 existing) {
  if constexpr (!CHECKED) return true;
  static_assert(COUNT <= 32);
  constexpr float SCALED_MOST = 0x1p79f, LARGEST = 0x1.fffffep127f;
  bool finite = true;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    if constexpr (SPLIT) sums[i] *= SPLIT_UNSCALE;
    const bool is_finite = SPLIT ? math_abs(sums[i]) < SCALED_MOST : math_abs(sums[i]) <= LARGEST;
    finite &= is_finite | ((existing >> i & 1) == 0);  // without branches
  }
  return finite;
}
