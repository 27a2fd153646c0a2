// Products with exp(x) that are rounded only once.
//
// exp(x) = (1 + rest) * 2^n with |rest| < 0.42. The product with (1 + rest) is one fused
// multiply-add, which saves the rounding of exp(x) itself. The product with 2^n comes last, so that
// a product keeps all its bits even if exp(x) alone would be subnormal.
#pragma once

#include "common/two_parts.cuh"
#include "target/math.cuh"

// What differs between f32 and f64. Numbers near MAGIC are integers, which their low bits count.
// LN2_HIGH + LN2_LOW is log(2); LN2_HIGH has so few bits that its products with n are exact.
template <class T>
struct ExponentialConstants;
template <>
struct ExponentialConstants<float> {
  static constexpr float LOG2E = 1.4426950408889634f, MAGIC = 0x1.8p23f;
  static constexpr float LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440054690583e-4f;
  static constexpr int MANTISSA_BITS = 23, EXPONENT_BIAS = 127;
  static constexpr int SHIFT = 64;  // exp is stored as exp * 2^SHIFT
  static constexpr float UNSHIFT = 0x1p-64f;
  using Bits = u32;
};
template <>
struct ExponentialConstants<double> {
  static constexpr double LOG2E = 1.4426950408889634074, MAGIC = 0x1.8p52;
  static constexpr double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
  static constexpr int MANTISSA_BITS = 52, EXPONENT_BIAS = 1023;
  static constexpr int SHIFT = 512;
  static constexpr double UNSHIFT = 0x1p-512;
  using Bits = u64;
};

// Minimax polynomials (Remez) for (exp(r) - 1 - r) / r^2 with |r| <= 0.3475: the error is 2^-28 of
// exp(r) in f32, and 2^-57 in f64.
device_inline float exponential_tail(float r) {
  float q = 0.0013950908549178030f;
  q = math_fma(q, r, 0.0083690732151986494f);
  q = math_fma(q, r, 0.041666199331264992f);
  q = math_fma(q, r, 0.16666517308573942f);
  return math_fma(q, r, 0.50000000972733442f);
}
device_inline double exponential_tail(double r) {
  double q = 2.5118232205051739e-8;
  q = math_fma(q, r, 2.7631662261667680e-7);
  q = math_fma(q, r, 2.7557215129044452e-6);
  q = math_fma(q, r, 0.000024801488936651930);
  q = math_fma(q, r, 0.00019841269918693144);
  q = math_fma(q, r, 0.0013888888947917760);
  q = math_fma(q, r, 0.0083333333333066038);
  q = math_fma(q, r, 0.041666666666512287);
  q = math_fma(q, r, 0.16666666666666700);
  return math_fma(q, r, 0.50000000000000131);
}

// exp(high + low) = (1 + rest) * 2^n. `count` is n + MAGIC, so its low bits hold n.
template <class T>
struct ExponentialParts {
  T rest, count;

  device_inline ExponentialParts(T high, T low) {
    using C = ExponentialConstants<T>;
    count = math_fma(high, C::LOG2E, C::MAGIC);
    const T n = math_add(count, -C::MAGIC);
    const T r = math_fma(n, -C::LN2_LOW, math_fma(n, -C::LN2_HIGH, high)) + low;
    rest = math_fma(math_mul(r, r), exponential_tail(r), r);
  }
};

// exp(high + low) for -130 < high <= 0 in f32 and -1000 < high <= 0 in f64, and products with it.
// BRIEF: it uses the hardware's 2^x, ignores `low`, and has a relative error of 2^-20.
template <bool BRIEF, class T>
struct Exponential {
  using C = ExponentialConstants<T>;
  static constexpr T UNSHIFT = BRIEF ? T(0x1p-32) : C::UNSHIFT;
  T rest, scale;  // exp is (1 + rest) * scale * UNSHIFT

  device_inline Exponential(T high, T low) {
    if constexpr (BRIEF) {
      rest = T(0);
      scale = math_fast_exp2(math_fma(high, C::LOG2E, T(32)));
    } else {
      using Bits = typename C::Bits;
      const ExponentialParts<T> parts(high, low);
      rest = parts.rest;
      scale = math_of_bits((math_bits(parts.count) << C::MANTISSA_BITS) +
                           (static_cast<Bits>(C::EXPONENT_BIAS + C::SHIFT) << C::MANTISSA_BITS));
    }
  }

  // v * exp / UNSHIFT.
  device_inline T scaled(T v) const {
    if constexpr (BRIEF) return v * scale;
    return math_mul(math_fma(v, rest, v), scale);
  }
  device_inline T scaled(TwoParts<T> v) const {
    return math_mul(v.high + math_fma(v.high, rest, v.low), scale);
  }
  // The next functions return v * exp, v * exp + addend, and exp.
  device_inline T times(T v) const { return math_mul(scaled(v), UNSHIFT); }
  device_inline T times_plus(T v, T addend) const { return math_fma(scaled(v), UNSHIFT, addend); }
  device_inline T times_plus(TwoParts<T> v, T addend) const {
    return math_fma(scaled(v), UNSHIFT, addend);
  }
  device_inline T value() const { return times(T(1)); }
};

// factor * exp(high + low) for all arguments: 0 or infinity where that is the nearest number. It
// multiplies by 2^n in three steps, because 2^n itself may be out of T's range.
template <class T>
device_inline T scale_exponential(T factor, T high, T low) {
  using C = ExponentialConstants<T>;
  using Bits = typename C::Bits;
  constexpr T MOST = T(C::EXPONENT_BIAS - 2) * T(3 * 0.69314718055994531);
  const T bounded = high > MOST ? MOST : high < -MOST ? -MOST : high;  // NaN stays NaN
  const ExponentialParts<T> parts(bounded, bounded == high ? low : T(0));
  const int n = static_cast<int>(math_bits(parts.count)) - static_cast<int>(math_bits(C::MAGIC));
  const auto power = [](int k) {
    return math_of_bits(static_cast<Bits>(C::EXPONENT_BIAS + k) << C::MANTISSA_BITS);
  };
  T out = math_fma(factor, parts.rest, factor);
  const int third = n / 3;
  out = math_mul(out, power(third));
  out = math_mul(out, power(third));
  return math_mul(out, power(n - 2 * third));
}
