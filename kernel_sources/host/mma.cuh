// Products of small matrices by a warp, on the host device: see kernel_sources/cuda/mma.cuh.
#pragma once

#include "target/kernel.cuh"

device_inline float tf32_of(float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(u32, x) & 0xffffe000u);
}
device_inline double tf32_of(double x) { return x; }
device_inline float tf32_round(float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(u32, x) + 0x1000u);
}
device_inline double tf32_round(double x) { return x; }

// One step of the sum: f64 fused; f32 exact, for products of 11 bits each are so in f64.
device_inline double mma_step(double c, double a, double b) { return __builtin_fma(a, b, c); }

device_inline double mma_round(double sum, double) { return sum; }
device_inline float mma_round(double sum, float) {  // toward zero
  const float nearest = static_cast<float>(sum);
  if (!(__builtin_fabs(nearest) > __builtin_fabs(sum))) return nearest;
  if (__builtin_isinf(sum)) return nearest;
  return __builtin_bit_cast(float, __builtin_bit_cast(u32, nearest) - 1);
}

template <class T>
device_inline void mma_16x8x8(T (&c)[4], const T (&a)[4], const T (&b)[2]) {
  struct Fragments {
    T a[4], b[2];
  } mine;
  __builtin_memcpy(mine.a, a, sizeof a);
  __builtin_memcpy(mine.b, b, sizeof b);
  const auto* const all =
      static_cast<const Fragments*>(kiln_context->warp_exchange(kiln_context, &mine, sizeof mine));
  const u32 lane = kiln_context->lane(kiln_context), g = lane / 4, t = lane % 4;
  for (u32 i = 0; i < 4; ++i) {
    const u32 column = 2 * t + i % 2;
    double sum = c[i];
    for (u32 k = 0; k < 8; ++k) {
      const T left = all[g * 4 + k % 4].a[k / 4 * 2 + i / 2];
      const T right = all[column * 4 + k % 4].b[k / 4];
      sum = mma_step(sum, tf32_of(left), tf32_of(right));
    }
    c[i] = mma_round(sum, T());
  }
}
