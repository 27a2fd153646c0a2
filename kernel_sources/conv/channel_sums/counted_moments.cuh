// The moments of a part of a channel that has any number of elements.
#pragma once

#include "conv/channel_sums/partial_moments.cuh"

struct CountedMoments {
  PartialMoments moments;
  float n;
};

// Those of COUNT parts together, `stride` apart, joined in their order.
template <int COUNT>
device_inline CountedMoments joined(const CountedMoments* parts, int stride) {
  float n = 0, first = 0, shift = 0;
#pragma unroll 4
  for (int i = 0; i < COUNT; ++i) {
    const CountedMoments part = parts[i * stride];
    if (n == 0.0f) shift = part.moments.shift;
    first = math_fma(part.n, part.moments.from(shift), first);
    n += part.n;
  }
  if (n == 0.0f) return {{0, 0, 0}, 0};
  const float mean = first / n;
  float m2 = 0;
#pragma unroll 4
  for (int i = 0; i < COUNT; ++i) {
    const CountedMoments part = parts[i * stride];
    const float d = part.moments.from(shift) - mean;
    m2 += part.n > 0.0f ? math_fma(d * d, part.n, part.moments.m2) : 0.0f;
  }
  return {{shift, mean, m2}, n};
}
