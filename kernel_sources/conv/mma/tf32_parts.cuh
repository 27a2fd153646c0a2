// 3xTF32 (SPLIT): the tensor cores read only 11 significant bits of f32, so each operand is split
// into hi, itself rounded to 11 bits, and lo, the rest; lo * lo is left out.
#pragma once

#include "conv/mma/scaled_sums.cuh"
#include "target/mma.cuh"

// The hi and lo parts of an operand.
struct HiLo {
  compute_t hi, lo;
};
// The tensor cores read the upper 11 of 24 bits of an operand. For a subnormal number, or a
// subnormal lo part, these may all be zero. So operands are first multiplied by 2^24, which makes
// all of them normal, and sums by 2^-48 at the end (scaled_sums.cuh).
//
// The tensor cores truncate operands instead of rounding them. So the multiplication that scales an
// operand also adds between a third and two thirds of the last bit that they read. This nearly
// rounds to nearest, at no cost. lo may then have either sign, and has one bit less.
constexpr float SPLIT_ROUND = SPLIT_SCALE * (1 + 0x1p-11f / 1.5f);

// SPLIT_CUT: hi is truncated, not rounded, which takes one register less. lo then has two more bits
// than the tensor cores read, so products err toward zero, by 2^-22 on average and 2^-19 at most.
device_inline HiLo split(compute_t x) {
  const compute_t scaled = x * SPLIT_SCALE;
  const compute_t hi = SPLIT_CUT ? scaled : x * SPLIT_ROUND;
  return {hi, scaled - tf32_of(hi)};
}
