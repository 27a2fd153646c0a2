// f32 in three products (SPLIT): the tensor cores read but 11 bits of f32, so each operand is the
// sum of itself rounded to 11 bits and of a rest, and rest * rest is left out.
#pragma once

#include "conv/mma/scaled_sums.cuh"
#include "target/mma.cuh"

// What two products share an operand's bits as.
struct Parts {
  compute_t whole, rest;
};
// Of a subnormal number, or the subnormal rest of a small one, they read the upper 11 of 24 bits,
// which may be none of those it has. So numbers are multiplied by 2^24 first, which makes all of
// them normal, and sums by 2^-48 in the end (scaled_sums.cuh).
//
// The tensor cores cut an operand off. So the multiplication that scales it adds, too, between a
// third and two thirds of the last bit that they read: nearly what rounding to nearest does, and
// for nothing. The rest may be of either sign then, and has a bit less.
constexpr float SPLIT_ROUND = SPLIT_SCALE * (1 + 0x1p-11f / 1.5f);

// SPLIT_CUT: not rounded, which needs a register less; the rest then has two bits more than the
// tensor cores read, and products err toward zero, by 2^-22 on average and 2^-19 at most.
device_inline Parts split(compute_t x) {
  const compute_t scaled = x * SPLIT_SCALE;
  const compute_t whole = SPLIT_CUT ? scaled : x * SPLIT_ROUND;
  return {whole, scaled - tf32_of(whole)};
}
