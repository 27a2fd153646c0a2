// Mathematical functions in f32 and f64. kernel_sources/host/math.cuh defines the same names for
// the host device.
#pragma once

#include "target/kernel.cuh"

// These are accurate to a few units in the last place.
device_inline float math_exp(float x) { return expf(x); }
device_inline double math_exp(double x) { return exp(x); }
device_inline float math_expm1(float x) { return expm1f(x); }
device_inline double math_expm1(double x) { return expm1(x); }
device_inline float math_log(float x) { return logf(x); }
device_inline double math_log(double x) { return log(x); }
device_inline float math_log1p(float x) { return log1pf(x); }
device_inline double math_log1p(double x) { return log1p(x); }
device_inline float math_tanh(float x) { return tanhf(x); }
device_inline double math_tanh(double x) { return tanh(x); }
device_inline float math_sqrt(float x) { return sqrtf(x); }
device_inline double math_sqrt(double x) { return sqrt(x); }
device_inline float math_abs(float x) { return fabsf(x); }
device_inline double math_abs(double x) { return fabs(x); }

// a * b + c, a * b and a + b, each rounded once. The compiler does not contract math_mul() or
// math_add() with another operation, so their rounding errors can be computed.
device_inline float math_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
device_inline double math_fma(double a, double b, double c) { return __fma_rn(a, b, c); }
device_inline float math_mul(float a, float b) { return __fmul_rn(a, b); }
device_inline double math_mul(double a, double b) { return __dmul_rn(a, b); }
device_inline float math_add(float a, float b) { return __fadd_rn(a, b); }
device_inline double math_add(double a, double b) { return __dadd_rn(a, b); }

// Reinterpret a number as bits and bits as a number.
device_inline u32 math_bits(float x) { return __float_as_uint(x); }
device_inline u64 math_bits(double x) { return static_cast<u64>(__double_as_longlong(x)); }
device_inline float math_of_bits(u32 bits) { return __uint_as_float(bits); }
device_inline double math_of_bits(u64 bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}

// The maximum and the minimum. If one argument is a NaN, the result is the other one.
device_inline float math_max(float a, float b) { return fmaxf(a, b); }
device_inline double math_max(double a, double b) { return fmax(a, b); }
device_inline float math_min(float a, float b) { return fminf(a, b); }
device_inline double math_min(double a, double b) { return fmin(a, b); }

// The maximum; NaN if either argument is a NaN.
device_inline float math_max_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a > b || a != a ? a : b;
#endif
}
device_inline double math_max_nan(double a, double b) { return a > b || a != a ? a : b; }

template <class T>
device_inline T math_infinity() {
  return static_cast<T>(__int_as_float(0x7f800000));
}

// 1 / x. In f32 it is one instruction of the special function unit, accurate to one unit in the
// last place.
device_inline float math_reciprocal(float x) {
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
device_inline double math_reciprocal(double x) { return 1 / x; }
// Like math_reciprocal(), but f32 subnormals, arguments and results, are flushed to 0.
device_inline float math_fast_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
device_inline double math_fast_reciprocal(double x) { return 1 / x; }

// exp(x). In f32 it uses the hardware's 2^x: the error is about 2 + |x| units in the last place,
// and results below the smallest normal number are 0.
device_inline float math_fast_exp(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.4426950408889634f));
  return result;
}
device_inline double math_fast_exp(double x) { return exp(x); }

// 2^x. In f32 it is the hardware's, with a relative error of 2^-22; subnormal results are 0.
device_inline float math_fast_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
device_inline double math_fast_exp2(double x) { return exp2(x); }

// log(x) for 0 < x < infinity. In f32 it uses the hardware's logarithm and is accurate to 2^-21.
device_inline float math_fast_log(float x) {
  float result;
  asm("lg2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result * 0.69314718055994531f;
}
device_inline double math_fast_log(double x) { return log(x); }
