// Activation functions and their derivatives in the compute type T, over its whole range. Errors
// are at most 4 units in the last place in f32 and f64. Where a derivative crosses zero, the f32
// error is at most 2^-22 times the larger of 1 and |x|. BRIEF, for results that are rounded to 16
// bits: the relative error is at most 2^-14.
//
// At an infinity, a function returns its limit. Every function of a NaN is NaN, except x^0.
#pragma once

#include "common/logistic.cuh"
#include "common/power.cuh"
#include "target/math.cuh"

struct Act {
  enum Mode {  // values of kilnActivationMode_t
    IDENTITY = 700,
    SIGMOID,
    RELU,
    TANH,
    CLIPPED_RELU,
    LEAKY_RELU,
    ELU,
    GELU_ERF,
    GELU_TANH,
    SILU,
    SOFTPLUS,
    HARD_SWISH,
    ABS,
    EXP,
    LOG,
    SQRT,
    SQUARE,
    POW,
    MISH,
    HARD_SIGMOID,
    CLIP,
    LINEAR
  };
};

// The activation descriptor's coef and coef2.
template <class T>
struct Coefficients {
  T first, second;
};
template <class T, class Params>
device_inline Coefficients<T> coefficients_of(const Params& params) {
  return {static_cast<T>(params.coef[0]), static_cast<T>(params.coef[1])};
}

template <class T>
device_inline T positive_part(T x) {  // NaN stays NaN
  return x < T(0) ? T(0) : x;
}
template <class T>
device_inline T clamp(T x, T low, T high) {  // NaN stays NaN
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// Mish, x tanh(log(1 + exp(x))). With e = exp(-|x|) it is x (1 + 2 e) / (1 + 2 e + 2 e^2) for x >=
// 0, else x e (1 - e (1 + e) / (2 + 2 e + e^2)).
template <bool BRIEF, class T>
device_inline T mish(T x) {
  using F = Functions<BRIEF, T>;
  const T size = bounded_size(x, for_type<T>(128, 800));
  const Exponential<BRIEF, T> exp(-size, T(0));
  const T e = exp.value();
  if (x < T(0)) {
    const T share = math_fma(e, e, e) * F::reciprocal(math_fma(e, e + T(2), T(2)));
    return exp.times(math_fma(size, share, -size));
  }
  const T twice = T(2) * e;
  return x * ((T(1) + twice) * F::reciprocal(math_fma(twice, e, T(1) + twice)));
}
// The derivative of mish: for x >= 0, 1 + e^2 (4 x - 2 + (4 x - 4) e - 4 e^2) / (1 + 2 e + 2
// e^2)^2; else, with a = -x, e (1 - a + e (4 a - 2 + (8 a - 4) e + (4 a - 3) e^2 + (a - 1) e^3) /
// (2 + 2 e + e^2)^2).
template <bool BRIEF, class T>
device_inline T mish_slope(T x) {
  using F = Functions<BRIEF, T>;
  const T size = bounded_size(x, for_type<T>(128, 800)), four = T(4) * size;
  const Exponential<BRIEF, T> exp(-size, T(0));
  const T e = exp.value();
  if (x < T(0)) {
    const T share = F::reciprocal(math_fma(e, e + T(2), T(2)));
    T sum = math_fma(e, size - T(1), four - T(3));
    sum = math_fma(e, sum, T(2) * four - T(4));
    sum = math_fma(e, sum, four - T(2));
    return exp.times(math_fma(e * share * share, sum, T(1) - size));
  }
  const T share = e * F::reciprocal(math_fma(T(2) * e, e + T(1), T(1)));
  return math_fma(share * share, math_fma(e, math_fma(T(-4), e, four - T(4)), four - T(2)), T(1));
}

template <int MODE, bool BRIEF, class T>
device_inline T activate(T x, Coefficients<T> coef) {
  using F = Functions<BRIEF, T>;
  if constexpr (MODE == Act::SIGMOID)
    return Logistic<BRIEF, T>::of(x).sigmoid(x);
  else if constexpr (MODE == Act::RELU)
    return positive_part(x);
  else if constexpr (MODE == Act::TANH)
    return F::tanh(x);
  else if constexpr (MODE == Act::CLIPPED_RELU)
    return clamp(x, T(0), coef.first);
  else if constexpr (MODE == Act::LEAKY_RELU)
    return x > T(0) ? x : coef.first * x;
  else if constexpr (MODE == Act::ELU)
    return x > T(0) ? x : coef.first * F::expm1(x);
  else if constexpr (MODE == Act::GELU_ERF)
    return GeluErf<BRIEF, T>(x).value_plus(positive_part(x));
  else if constexpr (MODE == Act::GELU_TANH)
    return GeluTanh<BRIEF, T>(x).value_plus(positive_part(x));
  else if constexpr (MODE == Act::SILU)
    return Silu<BRIEF, T>(x).value_plus(positive_part(x));
  else if constexpr (MODE == Act::SOFTPLUS)
    return positive_part(x) +
           F::log1p(Exponential<BRIEF, T>(-bounded_size(x, for_type<T>(128, 800)), T(0)).value());
  else if constexpr (MODE == Act::HARD_SWISH)
    return x <= T(-3) ? T(0) : (x >= T(3) ? x : x * (x + T(3)) / T(6));
  else if constexpr (MODE == Act::ABS)
    return math_abs(x);
  else if constexpr (MODE == Act::EXP)
    return F::exp(x);
  else if constexpr (MODE == Act::LOG)
    return math_log(x);
  else if constexpr (MODE == Act::SQRT)
    return math_sqrt(x);
  else if constexpr (MODE == Act::SQUARE)
    return x * x;
  else if constexpr (MODE == Act::POW)
    return power_of(coef.first, x, TwoParts<T>{coef.second, T(0)});
  else if constexpr (MODE == Act::MISH)
    return mish<BRIEF>(x);
  else if constexpr (MODE == Act::HARD_SIGMOID)
    return clamp(math_fma(coef.first, x, coef.second), T(0), T(1));
  else if constexpr (MODE == Act::CLIP)
    return clamp(x, coef.first, coef.second);
  else if constexpr (MODE == Act::LINEAR)
    return math_fma(coef.first, x, coef.second);
  else {
    static_assert(MODE == Act::IDENTITY, "no formula for this activation");
    return x;
  }
}

// The derivative at x of a function with f(x) = max(x, 0) + f(-|x|); `slope` is that at -|x|.
template <class T>
device_inline T slope_by_side(T x, T slope) {
  return x < T(0) ? slope : T(1) - slope;
}
// 1 strictly between two bounds, else 0; NaN stays NaN.
template <class T>
device_inline T inside(T x, T low, T high) {
  return x > low && x < high ? T(1) : (x == x ? T(0) : x);
}

// The derivative of an activation function. `v` is x or, where kiln/activation.h says so, y = f(x).
// Coefficients that are compared with y must have been rounded to y's type.
template <int MODE, bool BRIEF, class T>
device_inline T activation_slope(T v, Coefficients<T> coef) {
  using F = Functions<BRIEF, T>;
  // These take y.
  if constexpr (MODE == Act::SIGMOID)
    return v * (T(1) - v);
  else if constexpr (MODE == Act::RELU)
    return v > T(0) ? T(1) : (v == v ? T(0) : v);
  else if constexpr (MODE == Act::TANH)
    return (T(1) - v) * (T(1) + v);
  else if constexpr (MODE == Act::CLIPPED_RELU)
    return inside(v, T(0), coef.first);
  else if constexpr (MODE == Act::LEAKY_RELU)
    return v > T(0) ? T(1) : (v == v ? coef.first : v);
  else if constexpr (MODE == Act::ELU)
    return v > T(0) ? T(1) : v + coef.first;
  else if constexpr (MODE == Act::EXP)
    return v;
  else if constexpr (MODE == Act::SQRT)
    return T(0.5) / v;
  else if constexpr (MODE == Act::CLIP)
    return inside(v, coef.first, coef.second);
  else if constexpr (MODE == Act::LINEAR)
    return coef.first;
  // These take x.
  else if constexpr (MODE == Act::GELU_ERF)
    return slope_by_side(v, GeluErf<BRIEF, T>(v).slope());
  else if constexpr (MODE == Act::GELU_TANH)
    return slope_by_side(v, GeluTanh<BRIEF, T>(v).slope());
  else if constexpr (MODE == Act::SILU)
    return slope_by_side(v, Silu<BRIEF, T>(v).slope());
  else if constexpr (MODE == Act::SOFTPLUS)
    return Logistic<BRIEF, T>::of(v).sigmoid(v);
  else if constexpr (MODE == Act::HARD_SWISH)
    return v <= T(-3) ? T(0) : (v >= T(3) ? T(1) : (T(2) * v + T(3)) / T(6));
  else if constexpr (MODE == Act::ABS)
    return v > T(0) ? T(1) : (v < T(0) ? T(-1) : v);
  else if constexpr (MODE == Act::LOG)
    return T(1) / v;
  else if constexpr (MODE == Act::SQUARE)
    return T(2) * v;
  else if constexpr (MODE == Act::POW) {
    if (coef.second == T(0)) return T(0);
    return power_of(coef.first * coef.second, v, sum_of(coef.second, T(-1)));
  } else if constexpr (MODE == Act::MISH)
    return mish_slope<BRIEF>(v);
  else if constexpr (MODE == Act::HARD_SIGMOID)
    return coef.first * inside(math_fma(coef.first, v, coef.second), T(0), T(1));
  else {
    static_assert(MODE == Act::IDENTITY, "no derivative for this activation");
    return T(1);
  }
}
