// Checks f32 sums of the tensor cores before they are stored. 3xTF32 (SPLIT) scaled the operands
// (tf32_split.cuh): where an infinity met a lo part, or a scaled value overflowed, a sum may be NaN
// or infinite although it should not be. In TF32 the tensor cores read a NaN whose upper 19 bits
// are an infinity's as that infinity. So with CHECKED a sum that is not finite, which is rare, is
// recomputed by its definition.
#pragma once

#include "target/kernel.cuh"
#include "target/math.cuh"

constexpr float SPLIT_SCALE = 0x1p24f, SPLIT_UNSCALE = 0x1p-48f;  // for operands, for sums
static_assert(CHECKED || !SPLIT);

// Scales sums back. Returns whether all existing sums (those with a bit in `existing`) are finite
// and, if scaled, far enough from the largest number (an overflow may have ended there).
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
