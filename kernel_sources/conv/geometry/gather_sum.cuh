// One sum of a forward convolution or data gradient by its definition: a loop over taps and
// channels. Outside the source there are zeros, which are multiplied, too: with a weight that is
// NaN or infinite they give NaN.
#pragma once

#include "common/compute_type.cuh"
#include "conv/geometry/gather_params.h"
#include "target/kernel.cuh"

// The sum for row `row` of a group, at pixel (o, p, q) of an image in a phase. Index: the type of
// source positions and of offsets within an image. SELDOM: the code is short rather than fast, and
// stops at the first NaN, because the sum then stays NaN.
template <class Index, bool SELDOM>
device_inline compute_t gather_sum(const GatherParams& params, i64 image, i64 group, i64 row,
                                   int phase, Index o, Index p, Index q) {
  const Index d0 = o * STRIDE_D + ORIGIN_D[phase];
  const Index h0 = p * STRIDE_H + ORIGIN_H[phase];
  const Index w0 = q * STRIDE_W + ORIGIN_W[phase];
  const element_t* const source = static_cast<const element_t*>(params.source) +
                                  image * SOURCE_STRIDE_N + group * SOURCE_STRIDE_GROUP;
  const element_t* const w = static_cast<const element_t*>(params.w) + W_FIRST[phase] +
                             group * W_STRIDE_GROUP + row * W_STRIDE_ROW;
  constexpr int AT_ONCE = SELDOM ? 1 : 4;
  const int taps = FILTER_T[phase] * FILTER_R[phase] * FILTER_S[phase];
  compute_t sum = 0;
  int t = 0, r = 0, s = 0;
#pragma unroll 1
  for (int tap = 0; tap < taps; ++tap) {
    const Index d = d0 + static_cast<Index>(t) * STEP_D;
    const Index h = h0 + static_cast<Index>(r) * STEP_H;
    const Index v = w0 + static_cast<Index>(s) * STEP_W;
    const bool inside = d >= 0 && d < SOURCE_D && h >= 0 && h < SOURCE_H && v >= 0 && v < SOURCE_W;
    const element_t* from = source;
    if (inside)
      from += d * static_cast<Index>(SOURCE_STRIDE_D) + h * static_cast<Index>(SOURCE_STRIDE_H) +
              v * static_cast<Index>(SOURCE_STRIDE_W);
    const element_t* weight = w + (static_cast<Index>(t) * static_cast<Index>(W_STRIDE_T) +
                                   static_cast<Index>(r) * static_cast<Index>(W_STRIDE_R) +
                                   static_cast<Index>(s) * static_cast<Index>(W_STRIDE_S));
#pragma unroll AT_ONCE
    for (int c = 0; c < CHANNELS; ++c) {
      compute_t value = 0;
      if (inside) value = to_compute(from[static_cast<i64>(c) * SOURCE_STRIDE_C]);
      sum += value * to_compute(weight[static_cast<i64>(c) * W_STRIDE_C]);
    }
    if (SELDOM && sum != sum) break;
    if (++s < FILTER_S[phase]) continue;
    s = 0;
    if (++r == FILTER_R[phase]) r = 0, ++t;
  }
  return sum;
}
