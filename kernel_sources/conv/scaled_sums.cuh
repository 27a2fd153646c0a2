// Sums of f32 in three products on their way out. Their operands were scaled (tf32_split.cuh); and
// where an infinity met the rest of a number, or something scaled overflowed, a sum is NaN or
// infinite that need not be. So such a sum, which is rare, is added up once more by its definition.
#pragma once

#include "target/kernel.cuh"
#include "target/math.cuh"

constexpr float SPLIT_SCALE = 0x1p24f, SPLIT_UNSCALE = 0x1p-48f;  // of operands, of sums

// Scales sums back; whether all that exist, those of the bits in `existing`, are finite (and far
// enough from the largest number, should an overflow have ended there).
template <int COUNT>
device_inline bool scale_back(compute_t (&sums)[COUNT], u32 existing) {
  if constexpr (!SPLIT) return true;
  static_assert(COUNT <= 32);
  constexpr float MOST = 0x1p79f;
  bool finite = true;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    sums[i] *= SPLIT_UNSCALE;
    finite &= (math_abs(sums[i]) < MOST) | ((existing >> i & 1) == 0);  // without branches
  }
  return finite;
}
