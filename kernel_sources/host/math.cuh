// Mathematical functions, on the host device: see kernel_sources/cuda/math.cuh.
#pragma once

#include "target/kernel.cuh"

device_inline float math_exp(float x) { return __builtin_expf(x); }
device_inline double math_exp(double x) { return __builtin_exp(x); }
device_inline float math_expm1(float x) { return __builtin_expm1f(x); }
device_inline double math_expm1(double x) { return __builtin_expm1(x); }
device_inline float math_log(float x) { return __builtin_logf(x); }
device_inline double math_log(double x) { return __builtin_log(x); }
device_inline float math_log1p(float x) { return __builtin_log1pf(x); }
device_inline double math_log1p(double x) { return __builtin_log1p(x); }
device_inline float math_tanh(float x) { return __builtin_tanhf(x); }
device_inline double math_tanh(double x) { return __builtin_tanh(x); }
device_inline float math_sqrt(float x) { return __builtin_sqrtf(x); }
device_inline double math_sqrt(double x) { return __builtin_sqrt(x); }
device_inline float math_abs(float x) { return __builtin_fabsf(x); }
device_inline double math_abs(double x) { return __builtin_fabs(x); }
device_inline float math_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
device_inline double math_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
device_inline float math_mul(float a, float b) { return a * b; }
device_inline double math_mul(double a, double b) { return a * b; }
device_inline float math_add(float a, float b) { return a + b; }
device_inline double math_add(double a, double b) { return a + b; }
device_inline u32 math_bits(float x) { return __builtin_bit_cast(u32, x); }
device_inline u64 math_bits(double x) { return __builtin_bit_cast(u64, x); }
device_inline float math_of_bits(u32 bits) { return __builtin_bit_cast(float, bits); }
device_inline double math_of_bits(u64 bits) { return __builtin_bit_cast(double, bits); }
device_inline float math_max(float a, float b) { return __builtin_fmaxf(a, b); }
device_inline double math_max(double a, double b) { return __builtin_fmax(a, b); }
device_inline float math_min(float a, float b) { return __builtin_fminf(a, b); }
device_inline double math_min(double a, double b) { return __builtin_fmin(a, b); }
device_inline float math_max_nan(float a, float b) { return a > b || a != a ? a : b; }
device_inline double math_max_nan(double a, double b) { return a > b || a != a ? a : b; }

template <class T>
device_inline T math_infinity() {
  return static_cast<T>(__builtin_inff());
}
device_inline float math_reciprocal(float x) { return 1 / x; }
device_inline double math_reciprocal(double x) { return 1 / x; }
device_inline float math_fast_exp(float x) { return __builtin_expf(x); }
device_inline double math_fast_exp(double x) { return __builtin_exp(x); }
device_inline float math_fast_exp2(float x) { return __builtin_exp2f(x); }
device_inline double math_fast_exp2(double x) { return __builtin_exp2(x); }
device_inline float math_fast_log(float x) { return __builtin_logf(x); }
device_inline double math_fast_log(double x) { return __builtin_log(x); }
device_inline float math_fast_reciprocal(float x) { return 1 / x; }
device_inline double math_fast_reciprocal(double x) { return 1 / x; }
