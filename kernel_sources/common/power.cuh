// factor * x^y for finite y, with the special cases of C's pow(): x^0 is 1, even if x is NaN, and a
// finite negative x with a y that is not an integer gives NaN. The logarithm is a sum of two
// numbers, because y log(x) multiplies its error.
#pragma once

#include "common/exponential.cuh"
#include "common/two_parts.cuh"

// Minimax polynomials (Remez) for (2 atanh(s) / s - 2 - 2/3 s^2) / s^4 with z = s^2 <= 0.0295: the
// error is 2^-30 in f32, and 2^-58 in f64.
device_inline float logarithm_tail(float z) {
  float q = 0.19122674171218154f;
  q = math_fma(q, z, 0.22204668952430785f);
  q = math_fma(q, z, 0.28571532796200988f);
  return math_fma(q, z, 0.39999999903430947f);
}
device_inline double logarithm_tail(double z) {
  double q = 0.11725119011623665;
  q = math_fma(q, z, 0.11706042714353050);
  q = math_fma(q, z, 0.13334812275690676);
  q = math_fma(q, z, 0.15384594815484783);
  q = math_fma(q, z, 0.18181818336854544);
  q = math_fma(q, z, 0.22222222221648976);
  q = math_fma(q, z, 0.28571428571429378);
  return math_fma(q, z, 0.4);
}

// 2/3 as a sum of two numbers.
device_inline TwoParts<float> two_thirds(float) { return {0x1.555556p-1f, -0x1.555556p-26f}; }
device_inline TwoParts<double> two_thirds(double) {
  return {0x1.5555555555555p-1, 0x1.5555555555555p-55};
}

// log(x) for finite x > 0.
template <class T>
device_inline TwoParts<T> logarithm_of(T x) {
  using C = ExponentialConstants<T>;
  using Bits = typename C::Bits;
  constexpr T RAISE = T(Bits(1) << (C::MANTISSA_BITS + 1));
  const bool subnormal = math_bits(x) < Bits(1) << C::MANTISSA_BITS;
  const Bits bits = math_bits(subnormal ? x * RAISE : x);
  // x = m * 2^n with sqrt(1/2) <= m < sqrt(2).
  const Bits least = math_bits(T(0.70710678118654752));
  const Bits steps =
      (bits - least + (Bits(C::EXPONENT_BIAS) << C::MANTISSA_BITS)) >> C::MANTISSA_BITS;
  const int n = static_cast<int>(steps) - C::EXPONENT_BIAS;
  const T m = math_of_bits(bits - (static_cast<Bits>(n) << C::MANTISSA_BITS));
  // s = (m - 1) / (m + 1)
  const T f = math_add(m, T(-1)), d = math_add(m, T(1));
  const T d_low = math_add(m, -math_add(d, T(-1))), reciprocal = math_fast_reciprocal(d);
  const T s = math_mul(f, reciprocal);
  const T s_low = math_fma(-s, d_low, math_fma(-s, d, f)) * reciprocal;
  // 2 atanh(s) = 2 s + s^3 (2/3 + z R(z))
  TwoParts<T> z = product_of(s, s);
  z.low = math_fma(T(2) * s, s_low, z.low);
  const T r = logarithm_tail(z.high);
  const TwoParts<T> third = two_thirds(T(0));
  const T c = math_fma(z.high, r, third.high);
  const T c_low = math_fma(z.high, r, math_add(third.high, -c)) + third.low;
  TwoParts<T> cube = product_of(s, z.high);
  cube.low += math_fma(s, z.low, s_low * z.high);
  TwoParts<T> rest = product_of(cube.high, c);
  rest.low += math_fma(cube.high, c_low, cube.low * c);
  TwoParts<T> log = ordered_sum_of(T(2) * s, rest.high);
  log.low += math_fma(T(2), s_low, rest.low);
  // Adds n log(2); the product with LN2_HIGH is exact.
  const T count = static_cast<T>(subnormal ? n - (C::MANTISSA_BITS + 1) : n);
  TwoParts<T> out = ordered_sum_of(count * C::LN2_HIGH, log.high);
  out.low += math_fma(count, C::LN2_LOW, log.low);
  return ordered_sum_of(out.high, out.low);
}

template <class T>
device_inline T power_of(T factor, T x, TwoParts<T> y) {
  const T size = math_abs(x), most = math_infinity<T>();
  if (y.high == T(0)) return factor;
  T magnitude;
  if (size == T(0) || size == most) {
    magnitude = (size == T(0)) == (y.high < T(0)) ? factor * most : factor * T(0);
  } else {
    const TwoParts<T> log = logarithm_of(size);
    TwoParts<T> exponent = product_of(log.high, y.high);
    exponent.low += math_fma(log.high, y.low, log.low * y.high);
    magnitude = scale_exponential(factor, exponent.high, exponent.low);
  }
  if (x != x) return x;
  if (!(math_bits(x) >> (8 * sizeof(T) - 1))) return magnitude;
  // x is negative from here on. All numbers from WHOLE on are integers.
  constexpr T WHOLE = T(u64(1) << ExponentialConstants<T>::MANTISSA_BITS);
  const auto is_whole = [&](T v) {
    return math_abs(v) >= WHOLE || (math_abs(v) + WHOLE) - WHOLE == math_abs(v);
  };
  if (!is_whole(y.high) || !is_whole(y.low))
    return size == T(0) || size == most ? magnitude : most * T(0);  // NaN
  const bool odd = is_whole(y.high * T(0.5)) != is_whole(y.low * T(0.5));
  return odd ? -magnitude : magnitude;
}
