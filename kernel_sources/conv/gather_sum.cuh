// One sum of a forward convolution or data gradient by its definition: a loop over taps and
// channels.
#pragma once

#include "common/compute_type.cuh"
#include "conv/gather_params.h"
#include "target/kernel.cuh"

// Of row `row` of a group, at pixel (o, p, q) of an image in a phase. SELDOM: short rather than
// fast, and done with the first NaN, which nothing that follows would change.
template <bool SELDOM>
device_inline compute_t gather_sum(const GatherParams& params, i64 image, i64 group, i64 row,
                                   int phase, i64 o, i64 p, i64 q) {
  const i64 d0 = o * STRIDE_D + ORIGIN_D[phase];
  const i64 h0 = p * STRIDE_H + ORIGIN_H[phase];
  const i64 w0 = q * STRIDE_W + ORIGIN_W[phase];
  const element_t* const source = static_cast<const element_t*>(params.source) +
                                  image * SOURCE_STRIDE_N +
                                  group * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C);
  const element_t* const w = static_cast<const element_t*>(params.w) + W_FIRST[phase] +
                             group * W_STRIDE_GROUP + row * W_STRIDE_ROW;
  constexpr int AT_ONCE = SELDOM ? 1 : 4;
  compute_t sum = 0;
#pragma unroll 1
  for (int t = 0; t < FILTER_T[phase]; ++t) {
    const i64 d = d0 + static_cast<i64>(t) * STEP_D;
    if (d < 0 || d >= SOURCE_D) continue;
#pragma unroll 1
    for (int r = 0; r < FILTER_R[phase]; ++r) {
      const i64 h = h0 + static_cast<i64>(r) * STEP_H;
      if (h < 0 || h >= SOURCE_H) continue;
#pragma unroll 1
      for (int s = 0; s < FILTER_S[phase]; ++s) {
        const i64 v = w0 + static_cast<i64>(s) * STEP_W;
        if (v < 0 || v >= SOURCE_W) continue;
        const element_t* from =
            source + d * SOURCE_STRIDE_D + h * SOURCE_STRIDE_H + v * SOURCE_STRIDE_W;
        const element_t* tap = w + static_cast<i64>(t) * W_STRIDE_T +
                               static_cast<i64>(r) * W_STRIDE_R + static_cast<i64>(s) * W_STRIDE_S;
#pragma unroll AT_ONCE
        for (int c = 0; c < CHANNELS; ++c)
          sum += to_compute(from[static_cast<i64>(c) * SOURCE_STRIDE_C]) *
                 to_compute(tap[static_cast<i64>(c) * W_STRIDE_C]);
        if (SELDOM && sum != sum) return sum;
      }
    }
  }
  return sum;
}
