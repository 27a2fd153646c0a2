// Mathematical functions in f32 and f64. kernel_sources/host/math.cuh gives the same names.
#pragma once

#include "target/kernel.cuh"

// To a few units in the last place.
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
device_inline float math_erfc(float x) { return erfcf(x); }
device_inline double math_erfc(double x) { return erfc(x); }
device_inline float math_sqrt(float x) { return sqrtf(x); }
device_inline double math_sqrt(double x) { return sqrt(x); }
device_inline float math_abs(float x) { return fabsf(x); }
device_inline double math_abs(double x) { return fabs(x); }

// The larger of two numbers; beside a NaN, the other one.
device_inline float math_max(float a, float b) { return fmaxf(a, b); }
device_inline double math_max(double a, double b) { return fmax(a, b); }

// The larger of two numbers; NaN if either is.
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

// 1 / x: f32 to one unit in the last place, by one instruction of the special function unit.
device_inline float math_reciprocal(float x) {
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
device_inline double math_reciprocal(double x) { return 1 / x; }
// The same without subnormal numbers, which stand for 0.
device_inline float math_fast_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
device_inline double math_fast_reciprocal(double x) { return 1 / x; }

// exp(x) with the hardware's own 2^x: some 2 + |x| units in the last place in f32, 0 instead of
// less than the smallest normal number.
device_inline float math_fast_exp(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.4426950408889634f));
  return result;
}
device_inline double math_fast_exp(double x) { return exp(x); }

// log(x) with the hardware's own logarithm: to 2^-21 in f32, 0 < x < infinity.
device_inline float math_fast_log(float x) {
  float result;
  asm("lg2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result * 0.69314718055994531f;
}
device_inline double math_fast_log(double x) { return log(x); }
