// Activation functions and their gradients, in the compute type T. MODE is a kilnActivationMode_t.
//
// Forms are chosen so that nothing cancels: sigmoids as 1 / (1 + exp(-x)), 1 + erf as erfc, and
// (1 + tanh(t)) / 2 as 1 / (1 + exp(-2 t)). Every function of a NaN is NaN.
#pragma once

#include "target/math.cuh"

enum ActivationMode {
  IDENTITY,
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

template <class T>
device_inline T sigmoid(T x) {
  return math_reciprocal(T(1) + math_exp(-x));
}

// The argument of gelu's tanh, doubled, and its derivative.
template <class T>
device_inline T gelu_inner(T x) {
  return T(1.5957691216057308) * x * (T(1) + T(0.044715) * x * x);
}
template <class T>
device_inline T gelu_inner_slope(T x) {
  return T(1.5957691216057308) * (T(1) + T(0.134145) * x * x);
}

template <int MODE, class T>
device_inline T activate(T x, T coefficient) {
  if constexpr (MODE == SIGMOID) return sigmoid(x);
  if constexpr (MODE == RELU) return x < T(0) ? T(0) : x;
  if constexpr (MODE == TANH) return math_tanh(x);
  if constexpr (MODE == CLIPPED_RELU) {
    const T low = x < T(0) ? T(0) : x;
    return low > coefficient ? coefficient : low;
  }
  if constexpr (MODE == LEAKY_RELU) return x > T(0) ? x : coefficient * x;
  if constexpr (MODE == ELU) return x > T(0) ? x : coefficient * math_expm1(x);
  if constexpr (MODE == GELU_ERF) return T(0.5) * x * math_erfc(x * T(-0.70710678118654752));
  if constexpr (MODE == GELU_TANH) return x * sigmoid(gelu_inner(x));
  if constexpr (MODE == SILU) return x * sigmoid(x);
  if constexpr (MODE == SOFTPLUS) return (x < T(0) ? T(0) : x) + math_log1p(math_exp(-math_abs(x)));
  if constexpr (MODE == HARD_SWISH) {
    const T low = x + T(3) < T(0) ? T(0) : x + T(3);
    return x * (low > T(6) ? T(6) : low) / T(6);
  }
  return x;
}

// The derivative at x, given y = f(x) up to ELU, and x from GELU_ERF on.
template <int MODE, class T>
device_inline T activation_slope(T v, T coefficient) {
  if constexpr (MODE == SIGMOID) return v * (T(1) - v);
  if constexpr (MODE == RELU) return v > T(0) ? T(1) : v * T(0);  // NaN stays NaN
  if constexpr (MODE == TANH) return (T(1) - v) * (T(1) + v);
  if constexpr (MODE == CLIPPED_RELU) return v > T(0) && v < coefficient ? T(1) : v * T(0);
  if constexpr (MODE == LEAKY_RELU) return v > T(0) ? T(1) : (v == v ? coefficient : v);
  if constexpr (MODE == ELU) return v > T(0) ? T(1) : v + coefficient;
  if constexpr (MODE == GELU_ERF)
    return T(0.5) * math_erfc(v * T(-0.70710678118654752)) +
           v * (T(0.39894228040143268) * math_exp(T(-0.5) * v * v));
  if constexpr (MODE == GELU_TANH) {
    const T half = sigmoid(gelu_inner(v));
    return half + v * (half * (T(1) - half)) * gelu_inner_slope(v);
  }
  if constexpr (MODE == SILU) {
    const T s = sigmoid(v);
    return s * (T(1) + v * (T(1) - s));
  }
  if constexpr (MODE == SOFTPLUS) return sigmoid(v);
  if constexpr (MODE == HARD_SWISH)
    return v <= T(-3) ? T(0) : (v >= T(3) ? T(1) : (T(2) * v + T(3)) / T(6));
  return T(1);
}
