// The 16-bit floating-point types, on the host device: see kernel_sources/cuda/half.cuh.
// Conversions work on the bits, so that they need no compiler support and round as the GPU does.
#pragma once

#include "target/kernel.cuh"

struct f16_t {  // IEEE binary16
  unsigned short bits;
};
struct bf16_t {  // the upper half of an IEEE binary32
  unsigned short bits;
};
device_inline constexpr bool is_bf16(f16_t) { return false; }
device_inline constexpr bool is_bf16(bf16_t) { return true; }

// Has no branch, because a CPU would mispredict zeros and small numbers among others.
device_inline float to_float(f16_t x) {
  const u32 sign = (x.bits & 0x8000u) << 16;
  const u32 magnitude = x.bits & 0x7fffu;
  // Changes the exponent's bias from 15 to 127; the product normalizes subnormal numbers too.
  const float scaled = __builtin_bit_cast(float, magnitude << 13) * 0x1p112f;
  const u32 not_finite = magnitude >= 0x7c00u ? 0x7f800000u : 0;  // infinity or NaN
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(u32, scaled) | not_finite);
}
device_inline float to_float(bf16_t x) {
  return __builtin_bit_cast(float, static_cast<u32>(x.bits) << 16);
}
device_inline float to_float(float x) { return x; }

// Vectors are written out, because the level at which tests compile kernels does not make any.
typedef u32 u32x4 __attribute__((vector_size(16)));
typedef float floatx4 __attribute__((vector_size(16)));
typedef double doublex2 __attribute__((vector_size(16)));

// The values of four elements, each in the lower half of its word.
template <class T>
device_inline floatx4 to_floats(u32x4 bits);
template <>
device_inline floatx4 to_floats<f16_t>(u32x4 bits) {
  const u32x4 magnitude = bits & 0x7fffu;
  const floatx4 scaled = __builtin_bit_cast(floatx4, magnitude << 13) * 0x1p112f;
  const u32x4 not_finite = __builtin_bit_cast(u32x4, magnitude >= 0x7c00u) & 0x7f800000u;
  return __builtin_bit_cast(
      floatx4, (bits & 0x8000u) << 16 | __builtin_bit_cast(u32x4, scaled) | not_finite);
}
template <>
device_inline floatx4 to_floats<bf16_t>(u32x4 bits) {
  return __builtin_bit_cast(floatx4, bits << 16);
}

device_inline float narrowed(double v) {
  const float nearest = static_cast<float>(v);
  if (static_cast<double>(nearest) == v) return nearest;
  u32 bits = __builtin_bit_cast(u32, nearest);
  // If rounding went away from zero (also to infinity), step back.
  if (__builtin_fabs(static_cast<double>(nearest)) > __builtin_fabs(v)) --bits;
  return __builtin_bit_cast(float, bits | 1u);
}

// Rounds to nearest, ties to even; every NaN becomes 0x7fff.
template <class T>
device_inline T from_float(float v);
template <>
device_inline f16_t from_float<f16_t>(float v) {
  const u32 bits = __builtin_bit_cast(u32, v);
  const u32 sign = (bits >> 16) & 0x8000u;
  const u32 magnitude = bits & 0x7fffffffu;
  u32 half;
  if (magnitude > 0x7f800000u) {
    return f16_t{0x7fff};
  } else if (magnitude >= 0x38800000u) {  // from 2^-14 on: normal or infinite, or becomes infinite
    half = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
    if (half > 0x7c00u) half = 0x7c00u;
  } else {  // subnormal, in units of 2^-24
    const u32 shift = 126 - (magnitude >> 23);
    const u32 significand = (magnitude & 0x7fffffu) | 0x800000u;
    half = 0;
    if (shift <= 24) {  // else it is less than half a unit
      const u32 halfway = 1u << (shift - 1);
      const u32 rest = significand & ((1u << shift) - 1);
      half = significand >> shift;
      if (rest > halfway || (rest == halfway && (half & 1))) ++half;
    }
  }
  return f16_t{static_cast<unsigned short>(sign | half)};
}
template <>
device_inline bf16_t from_float<bf16_t>(float v) {
  const u32 bits = __builtin_bit_cast(u32, v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bf16_t{0x7fff};
  return bf16_t{static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
}
template <>
device_inline float from_float<float>(float v) {
  return v;
}
