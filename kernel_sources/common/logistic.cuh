// The building blocks of activation functions: exp(-|x|) and functions of it. None of them
// overflows, cancels or rounds a subnormal intermediate.
//
// BRIEF, for results that are rounded to 16 bits: the relative error is 2^-14. It uses the special
// function unit, and short polynomials where differences would cancel.
#pragma once

#include "common/exponential.cuh"
#include "common/normal_tail.cuh"
#include "common/two_parts.cuh"

// The smaller of |x| and `most`; NaN stays NaN.
template <class T>
device_inline T bounded_size(T x, T most) {
  const T size = math_abs(x);
  return size > most ? most : size;
}
// Chooses between two constants by type.
template <class T>
device_inline constexpr T for_type(double f32, double f64) {
  return static_cast<T>(sizeof(T) == 4 ? f32 : f64);
}

template <bool BRIEF, class T>
struct Functions {
  device_inline static T exp(T x) {
    if constexpr (!BRIEF) return scale_exponential(T(1), x, T(0));
    const T root = math_fast_exp2(x * T(0.72134752044448170));  // not subnormal
    return root * root;
  }
  device_inline static T expm1(T x) {
    if constexpr (!BRIEF) return math_expm1(x);
    const T small = x * (T(1) + x * (T(0.5) + x * T(1.0 / 6)));
    return math_abs(x) < T(0.03125) ? small : math_fast_exp(x) - T(1);
  }
  // log(1 + x) for 0 <= x <= 1.
  device_inline static T log1p(T x) {
    if constexpr (!BRIEF) return math_log1p(x);
    const T small = x * (T(1) - x * (T(0.5) - x * T(1.0 / 3)));
    return x < T(0.015625) ? small : math_fast_log(T(1) + x);
  }
  device_inline static T tanh(T x) {
    if constexpr (!BRIEF) return math_tanh(x);
    const T small = x * (T(1) - x * x * T(1.0 / 3));
    const T large = T(1) - T(2) * math_fast_reciprocal(T(1) + math_fast_exp(T(2) * x));
    return math_abs(x) < T(0.03125) ? small : large;
  }
  // 1 / x for 1 <= x <= 25, with an error of little more than half a unit in the last place.
  device_inline static T reciprocal(T x) {
    const T r = math_fast_reciprocal(x);
    if constexpr (BRIEF || sizeof(T) == 8) return r;
    return math_fma(r, math_fma(-r, x, T(1)), r);
  }
};

// exp(-size) and 1 / (1 + exp(-size)), where size + low >= 0 is |x| or a function of it.
template <bool BRIEF, class T>
struct Logistic {
  T size;
  Exponential<BRIEF, T> exp;
  T share;

  device_inline Logistic(T size, T low)
      : size(size), exp(-size, -low), share(reciprocal_of_one_and(exp)) {}

  // For |x|, bounded where exp(-|x|) |x| has long become 0.
  device_inline static Logistic of(T x) {
    return Logistic(bounded_size(x, for_type<T>(128, 800)), T(0));
  }
  // 1 / (1 + exp(-x)).
  device_inline T sigmoid(T x) const { return x < T(0) ? exp.times(share) : share; }
  // S (1 - w (1 - S)) with S = 1 / (1 + exp(size)) and w = 1 - v >= 0. It is computed as exp(-size)
  // times a sum in which the rounding error of S matters little where v is large.
  device_inline T slope(TwoParts<T> v) const {
    const T s = exp.times(share);
    const T sum = math_fma(s, math_fma(s, v.high - T(1), math_fma(T(-2), v.high, T(1))), v.high);
    return exp.times_plus(TwoParts<T>{sum, v.low}, T(0));
  }

 private:
  device_inline static T reciprocal_of_one_and(const Exponential<BRIEF, T>& exp) {
    const T d = exp.times_plus(T(1), T(1)), r = math_fast_reciprocal(d);
    if constexpr (BRIEF) return r;
    const T lost = exp.times_plus(T(1), math_add(T(1), -d));  // the rounding error of d
    return math_fma(r, math_fma(-r, lost, math_fma(-r, d, T(1))), r);
  }
};

// silu and both gelus have the form x S(x) with S(-x) = 1 - S(x). So f(x) = max(x, 0) + f(-|x|),
// and f'(x) is f'(-|x|) for x < 0, else 1 - f'(-|x|). The classes below compute the values at -|x|.

template <bool BRIEF, class T>
struct Silu {
  Logistic<BRIEF, T> of;

  device_inline explicit Silu(T x) : of(Logistic<BRIEF, T>::of(x)) {}
  device_inline T value_plus(T addend) const {
    return of.exp.times_plus(-of.size * of.share, addend);
  }
  device_inline T slope() const { return of.slope({T(1) - of.size, T(0)}); }
};

// K + K_LOW is sqrt(8 / pi), and KC + KC_LOW is 0.044715 sqrt(8 / pi); the low parts are what
// rounding the constants to T loses.
template <class T>
struct GeluConstants;
template <>
struct GeluConstants<float> {
  static constexpr float K = 0x1.988454p+0f, K_LOW = -0x1.857936p-25f;
  static constexpr float KC = 0x1.2444f2p-4f, KC_LOW = 0x1.49b16ap-29f;
};
template <>
struct GeluConstants<double> {
  static constexpr double K = 0x1.9884533d43651p+0, K_LOW = -0x1.cbc0d30ebfd15p-54;
  static constexpr double KC = 0x1.2444f2a4d8b4bp-4, KC_LOW = -0x1.6c843a29d1c70p-61;
};

// x S(u) with u = sqrt(8 / pi) (x + 0.044715 x^3), which is twice the argument of gelu's tanh. u is
// a sum of two numbers, because its absolute error is the relative error of exp(-u).
template <bool BRIEF, class T>
struct GeluTanh {
  using C = GeluConstants<T>;
  T size;
  TwoParts<T> u;
  Logistic<BRIEF, T> of;

  device_inline explicit GeluTanh(T x)
      : size(bounded_size(x, for_type<T>(11.5, 21.75))), u(argument(size)), of(u.high, u.low) {}
  device_inline T value_plus(T addend) const { return of.exp.times_plus(-size * of.share, addend); }
  device_inline T slope() const {  // |x| u' is 3 u - 2 K |x|
    const T linear = math_fma(T(2) * C::K, size, T(1)), high = math_fma(T(-3), u.high, linear);
    if constexpr (BRIEF) return of.slope({high, T(0)});
    const T linear_low = math_fma(T(2) * C::K, size, math_add(T(1), -linear));
    return of.slope({high, math_fma(T(-3), u.low, math_fma(T(2) * C::K_LOW, size, linear_low))});
  }

 private:
  device_inline static TwoParts<T> argument(T size) {
    if constexpr (BRIEF) return {size * math_fma(C::KC * size, size, C::K), T(0)};
    const TwoParts<T> square = product_of(size, size);
    TwoParts<T> cubic = product_of(C::KC, square.high);
    cubic.low += math_fma(C::KC, square.low, C::KC_LOW * square.high);
    TwoParts<T> factor = sum_of(C::K, cubic.high);
    factor.low += cubic.low + C::K_LOW;
    TwoParts<T> u = product_of(size, factor.high);
    u.low = math_fma(size, factor.low, u.low);
    return u;
  }
};

// x Phi(x), where Phi is the cumulative normal distribution.
template <bool BRIEF, class T>
struct GeluErf {
  T size;
  Exponential<BRIEF, T> density;  // exp(-x^2 / 2)

  device_inline explicit GeluErf(T x)
      : size(bounded_size(x, for_type<T>(15, 39))), density(density_at(size)) {}
  device_inline T value_plus(T addend) const {
    if constexpr (BRIEF) return density.times_plus(-size * brief_mills_ratio(size), addend);
    const TwoParts<T> product = times_mills_ratio(size);
    // In f32 the polynomials are short enough to allow one more rounding.
    if constexpr (sizeof(T) == 4) return density.times_plus(-product.high, addend);
    return density.times_plus(TwoParts<T>{-product.high, -product.low}, addend);
  }
  device_inline T slope() const {
    constexpr T HEIGHT = T(0.39894228040143267794);  // 1 / sqrt(2 pi)
    if constexpr (BRIEF) return density.times(math_fma(-size, HEIGHT, mills_ratio(size).high));
    const TwoParts<T> mills = mills_ratio(size);
    const T high = math_fma(-size, HEIGHT, mills.high);
    return density.times_plus({high, mills.low}, T(0));
  }

 private:
  device_inline static Exponential<BRIEF, T> density_at(T size) {
    if constexpr (BRIEF) return {T(-0.5) * math_mul(size, size), T(0)};
    const TwoParts<T> exponent = product_of(T(-0.5) * size, size);
    return Exponential<BRIEF, T>(exponent.high, exponent.low);
  }
};
