// Products of small matrices by a warp, on the host device: see kernel_sources/cuda/mma.cuh.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/matrix_load.cuh"

device_inline float tf32_of(float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(u32, x) & 0xffffe000u);
}
device_inline double tf32_of(double x) { return x; }

// One step of the sum: f64 fused; f32 exact, for products of 11 bits each are so in f64.
device_inline double mma_step(double c, double a, double b) { return __builtin_fma(a, b, c); }

device_inline double mma_round(double sum, double) { return sum; }
// Toward zero; but what f32 cannot hold, from 2^128 on, is infinite.
device_inline float mma_round(double sum, float) {
  const float nearest = static_cast<float>(sum);
  if (!(__builtin_fabs(nearest) > __builtin_fabs(sum))) return nearest;
  if (__builtin_fabs(sum) >= 0x1p128) return nearest;
  return __builtin_bit_cast(float, __builtin_bit_cast(u32, nearest) - 1);
}

// Over K.
template <int K, class T>
device_inline void mma_of_one(T (&c)[4], const T (&a)[K / 2], const T (&b)[K / 4]) {
  struct Fragments {
    T a[K / 2], b[K / 4];
  } mine;
  __builtin_memcpy(mine.a, a, sizeof a);
  __builtin_memcpy(mine.b, b, sizeof b);
  const auto* const all =
      static_cast<const Fragments*>(kiln_context->warp_exchange(kiln_context, &mine, sizeof mine));
  const u32 lane = kiln_context->lane(kiln_context), g = lane / 4, t = lane % 4;
  for (u32 i = 0; i < 4; ++i) {
    const u32 column = 2 * t + i % 2;
    double sum = c[i];
    for (u32 k = 0; k < K; ++k) {
      const T left = all[g * 4 + k % 4].a[k / 4 * 2 + i / 2];
      const T right = all[column * 4 + k % 4].b[k / 4];
      sum = mma_step(sum, tf32_of(left), tf32_of(right));
    }
    c[i] = mma_round(sum, T());
  }
}
template <int L, class Sums, int RIGHT>
device_inline void mma_16x8x8(Sums& sums, const float (&left)[4], const float (&right)[RIGHT][2]) {
  for (int r = 0; r < RIGHT; ++r) mma_of_one<8>(sums.part[L][r], left, right[r]);
}
template <int L, class Sums, int RIGHT>
device_inline void mma_16x8x4(Sums& sums, const double (&left)[2],
                              const double (&right)[RIGHT][1]) {
  for (int r = 0; r < RIGHT; ++r) mma_of_one<4>(sums.part[L][r], left, right[r]);
}

device_inline float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }
device_inline u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
device_inline double double_of(u32 low, u32 high) {
  return __builtin_bit_cast(double, static_cast<u64>(high) << 32 | low);
}

template <class T>
device_inline void mma_of_pairs(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  struct Fragments {
    u32 a[4], b[2];
  } mine;
  __builtin_memcpy(mine.a, a, sizeof a);
  __builtin_memcpy(mine.b, b, sizeof b);
  const auto* const all =
      static_cast<const Fragments*>(kiln_context->warp_exchange(kiln_context, &mine, sizeof mine));
  const auto element = [](u32 pair, u32 i) {
    return static_cast<double>(to_float(T{static_cast<unsigned short>(pair >> 16 * i)}));
  };
  const u32 lane = kiln_context->lane(kiln_context), g = lane / 4, t = lane % 4;
  for (u32 i = 0; i < 4; ++i) {
    const u32 column = 2 * t + i % 2;
    double sum = c[i];
    for (u32 k = 0; k < 16; ++k)
      sum += element(all[g * 4 + k / 2 % 4].a[k / 8 * 2 + i / 2], k % 2) *
             element(all[column * 4 + k / 2 % 4].b[k / 8], k % 2);
    c[i] = mma_round(sum, 0.0f);
  }
}
template <class T, int L, class Sums, int RIGHT>
device_inline void mma_16x8x16(Sums& sums, const u32 (&left)[4], const u32 (&right)[RIGHT][2]) {
  for (int r = 0; r < RIGHT; ++r) mma_of_pairs<T>(sums.part[L][r], left, right[r]);
}
