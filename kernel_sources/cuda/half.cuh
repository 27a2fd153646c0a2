// The 16-bit floating-point types as storage, and their conversions to and from the compute types.
// kernel_sources/host/half.cuh defines the same names for the host device.
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

device_inline float to_float(f16_t x) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
}
device_inline float to_float(bf16_t x) { return __uint_as_float(static_cast<u32>(x.bits) << 16); }
device_inline float to_float(float x) { return x; }

// Rounds an f64 to f32 "to odd": truncates it, and sets the last bit if anything was lost. Rounding
// the result to 16 bits then gives the same as rounding the f64 directly.
device_inline float narrowed(double v) {
  const float cut = __double2float_rz(v);
  return __uint_as_float(__float_as_uint(cut) | (static_cast<double>(cut) != v ? 1u : 0u));
}

// Rounds to nearest, ties to even; every NaN becomes 0x7fff.
template <class T>
device_inline T from_float(float v);
template <>
device_inline f16_t from_float<f16_t>(float v) {
  f16_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(v));
  return result;
}
template <>
device_inline bf16_t from_float<bf16_t>(float v) {
  bf16_t result;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(v));
#else
  const u32 bits = __float_as_uint(v);
  const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  result.bits = static_cast<unsigned short>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
#endif
  return result;
}
template <>
device_inline float from_float<float>(float v) {
  return v;
}
