// Activation functions and their gradients, in the compute type T.
//
// Forms are chosen so that nothing cancels: sigmoids as 1 / (1 + exp(-x)), 1 + erf as erfc, and
// (1 + tanh(t)) / 2 as 1 / (1 + exp(-2 t)). Every function of a NaN is NaN.
#pragma once

#include "target/math.cuh"

enum ActivationMode {  // with the values of kilnActivationMode_t
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
  HARD_SWISH
};

// The functions below to a few units in the last place or, BRIEF, to 2^-14 of their value, for
// results that are rounded to 16 bits: the special function unit's own operations, and short
// polynomials where those would cancel.
template <bool BRIEF>
struct Functions {
  template <class T>
  device_inline static T exp(T x) {
    return BRIEF ? math_fast_exp(x) : math_exp(x);
  }
  template <class T>
  device_inline static T expm1(T x) {
    if constexpr (!BRIEF) return math_expm1(x);
    const T small = x * (T(1) + x * (T(0.5) + x * T(1.0 / 6)));
    return math_abs(x) < T(0.03125) ? small : math_fast_exp(x) - T(1);
  }
  // log(1 + x) of 0 <= x <= 1.
  template <class T>
  device_inline static T log1p(T x) {
    if constexpr (!BRIEF) return math_log1p(x);
    const T small = x * (T(1) - x * (T(0.5) - x * T(1.0 / 3)));
    return x < T(0.015625) ? small : math_fast_log(T(1) + x);
  }
  template <class T>
  device_inline static T tanh(T x) {
    if constexpr (!BRIEF) return math_tanh(x);
    const T small = x * (T(1) - x * x * T(1.0 / 3));
    const T large = T(1) - T(2) * math_fast_reciprocal(T(1) + math_fast_exp(T(2) * x));
    return math_abs(x) < T(0.03125) ? small : large;
  }
  template <class T>
  device_inline static T sigmoid(T x) {
    return BRIEF ? math_fast_reciprocal(T(1) + exp(-x)) : math_reciprocal(T(1) + exp(-x));
  }
  // The normal distribution: (1 + erf(x / sqrt 2)) / 2. `density`: exp(-x^2 / 2).
  template <class T>
  device_inline static T normal(T x, T density) {
    if constexpr (!BRIEF) return T(0.5) * math_erfc(x * T(-0.70710678118654752));
    // The tail over the density as a polynomial of t = 1 / (1 + 0.38 |x|), fitted by iterated
    // weighted least squares for |x| up to 14: 3.6e-5 of the value.
    const T t = math_fast_reciprocal(T(1) + T(0.38) * math_abs(x));
    const T tail = density * t *
                   (T(0.15122586895700313) +
                    t * (T(0.157823064770614) +
                         t * (T(0.09200010296940496) +
                              t * (T(0.1888489610396365) - t * T(0.08991516459093045)))));
    return x < T(0) ? tail : T(1) - tail;
  }
};

// The argument of gelu's tanh, doubled, and its derivative.
template <class T>
device_inline T gelu_inner(T x) {
  return T(1.5957691216057308) * x * (T(1) + T(0.044715) * x * x);
}
template <class T>
device_inline T gelu_inner_slope(T x) {
  return T(1.5957691216057308) * (T(1) + T(0.134145) * x * x);
}

template <int MODE, bool BRIEF, class T>
device_inline T activate(T x, T coefficient) {
  using F = Functions<BRIEF>;
  if constexpr (MODE == SIGMOID) return F::sigmoid(x);
  if constexpr (MODE == RELU) return x < T(0) ? T(0) : x;
  if constexpr (MODE == TANH) return F::tanh(x);
  if constexpr (MODE == CLIPPED_RELU) {
    const T low = x < T(0) ? T(0) : x;
    return low > coefficient ? coefficient : low;
  }
  if constexpr (MODE == LEAKY_RELU) return x > T(0) ? x : coefficient * x;
  if constexpr (MODE == ELU) return x > T(0) ? x : coefficient * F::expm1(x);
  if constexpr (MODE == GELU_ERF) return x * F::normal(x, BRIEF ? F::exp(T(-0.5) * x * x) : T(0));
  if constexpr (MODE == GELU_TANH) return x * F::sigmoid(gelu_inner(x));
  if constexpr (MODE == SILU) return x * F::sigmoid(x);
  if constexpr (MODE == SOFTPLUS) return (x < T(0) ? T(0) : x) + F::log1p(F::exp(-math_abs(x)));
  if constexpr (MODE == HARD_SWISH) {
    const T low = x + T(3) < T(0) ? T(0) : x + T(3);
    return x * (low > T(6) ? T(6) : low) / T(6);
  }
  return x;
}

// The derivative at x, given y = f(x) up to ELU, and x from GELU_ERF on.
template <int MODE, bool BRIEF, class T>
device_inline T activation_slope(T v, T coefficient) {
  using F = Functions<BRIEF>;
  if constexpr (MODE == SIGMOID) return v * (T(1) - v);
  if constexpr (MODE == RELU) return v > T(0) ? T(1) : v * T(0);  // NaN stays NaN
  if constexpr (MODE == TANH) return (T(1) - v) * (T(1) + v);
  if constexpr (MODE == CLIPPED_RELU) return v > T(0) && v < coefficient ? T(1) : v * T(0);
  if constexpr (MODE == LEAKY_RELU) return v > T(0) ? T(1) : (v == v ? coefficient : v);
  if constexpr (MODE == ELU) return v > T(0) ? T(1) : v + coefficient;
  if constexpr (MODE == GELU_ERF) {
    const T density = F::exp(T(-0.5) * v * v);
    return F::normal(v, density) + v * (T(0.39894228040143268) * density);
  }
  if constexpr (MODE == GELU_TANH) {
    const T half = F::sigmoid(gelu_inner(v));
    return half + v * (half * (T(1) - half)) * gelu_inner_slope(v);
  }
  if constexpr (MODE == SILU) {
    const T s = F::sigmoid(v);
    return s * (T(1) + v * (T(1) - s));
  }
  if constexpr (MODE == SOFTPLUS) return F::sigmoid(v);
  if constexpr (MODE == HARD_SWISH)
    return v <= T(-3) ? T(0) : (v >= T(3) ? T(1) : (T(2) * v + T(3)) / T(6));
  return T(1);
}
