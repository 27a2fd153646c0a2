// Operations on pairs of 16-bit numbers in a 32-bit word, half by half.
// kernel_sources/host/half_pairs.cuh defines the same names for the host device.
#pragma once

#include "target/half.cuh"
#include "target/math.cuh"

template <class T>
device_inline T half_of(u32 pair, int number) {
  return T{static_cast<unsigned short>(pair >> 16 * number)};
}

// The maximum of each half. If one number is a NaN, the result is the other number or, with
// NAN_WINS, NaN.
template <class T, bool NAN_WINS>
device_inline u32 larger_pair(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 800
  u32 result;
  if constexpr (is_bf16(T{})) {
    if constexpr (NAN_WINS)
      asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    else
      asm("max.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  } else if constexpr (NAN_WINS) {
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  } else {
    asm("max.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  }
  return result;
#else
  u32 result = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float x = to_float(half_of<T>(a, i)), y = to_float(half_of<T>(b, i));
    const float larger = NAN_WINS ? math_max_nan(x, y) : math_max(x, y);
    result |= static_cast<u32>(from_float<T>(larger).bits) << 16 * i;
  }
  return result;
#endif
}

// 0xffff for each half whose two numbers are equal, else 0. A NaN equals nothing.
template <class T>
device_inline u32 equal_pair(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 900
  u32 result;
  if constexpr (is_bf16(T{}))
    asm("set.eq.u32.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  else
    asm("set.eq.u32.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
#else
  u32 result = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i)
    if (to_float(half_of<T>(a, i)) == to_float(half_of<T>(b, i))) result |= 0xffffu << 16 * i;
  return result;
#endif
}

// Adds x0 and x1 to their sums where that half of `a` is that half of `b`. The halves are compared
// as f16: small integers are different denormal numbers.
device_inline void add_where_equal(u32 a, u32 b, float x0, float x1, float& sum0, float& sum1) {
  asm("{\n"
      ".reg .pred p, q;\n"
      "setp.eq.f16x2 p|q, %2, %3;\n"
      "@p add.f32 %0, %0, %4;\n"
      "@q add.f32 %1, %1, %5;\n"
      "}"
      : "+f"(sum0), "+f"(sum1)
      : "r"(a), "r"(b), "f"(x0), "f"(x1));
}
