// Activations and their derivatives by their definitions.
//
// In extended precision (long double; 64 bits of significand on x86, 113 on others), so that what
// cancels, or what an exponent multiplies its error by, is right in f64; and its range is so wide
// that x^3 of no f64 overflows.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/element.hpp"
#include "reference/reference.hpp"

namespace kiln::reference {
namespace {

using Real = long double;

const Real gelu_slope = std::sqrt(2 / std::numbers::pi_v<Real>), cubic = 0.044715L;

Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }

// gelu's tanh has this argument, and this derivative of it.
Real gelu_inner(Real x) { return gelu_slope * (x + cubic * x * x * x); }
Real gelu_inner_slope(Real x) { return gelu_slope * (1 + 3 * cubic * x * x); }

// The argument at which a function with a limit at infinity is evaluated there.
Real far_enough(double x) { return std::isinf(x) ? std::copysign(1e1000L, x) : x; }

double between(double x, double low, double high) {
  return std::isnan(x) ? x : std::min(std::max(x, low), high);
}
double is_between(double x, double low, double high) {
  return std::isnan(x) ? x : x > low && x < high ? 1 : 0;
}

// The derivative of a function of x.
Real slope_at(const Activation& activation, Real x) {
  const Real coef = activation.coefficient, coef2 = activation.coefficient2;
  switch (activation.mode) {
    case KILN_ACTIVATION_GELU_ERF:
      return std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2 +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
    case KILN_ACTIVATION_GELU_TANH: {  // of x S(2 t): S (1 + 2 x t' (1 - S))
      const Real t = gelu_inner(x);
      return sigmoid(2 * t) * (1 + 2 * x * sigmoid(-2 * t) * gelu_inner_slope(x));
    }
    case KILN_ACTIVATION_SILU: return sigmoid(x) * (1 + x * sigmoid(-x));
    case KILN_ACTIVATION_SOFTPLUS: return sigmoid(x);
    case KILN_ACTIVATION_MISH: {
      const Real inner = std::log1p(std::exp(x)), cosh = std::cosh(inner);
      return std::tanh(inner) + x * sigmoid(x) / (cosh * cosh);
    }
    case KILN_ACTIVATION_POW: return coef2 == 0 ? 0 : coef * coef2 * std::pow(x, coef2 - 1);
    default: return std::nan("");
  }
}

}  // namespace

Activation in_type(const Activation& activation, DataType type) {
  Activation out = activation;
  for (double* coefficient : {&out.coefficient, &out.coefficient2})
    *coefficient = within(type, round_to_format(*coefficient, format_of(type)));
  return out;
}

double activate(const Activation& activation, double value) {
  const double coef = activation.coefficient, coef2 = activation.coefficient2;
  const Real x = far_enough(value);
  switch (activation.mode) {
    case KILN_ACTIVATION_IDENTITY: return value;
    case KILN_ACTIVATION_SIGMOID: return static_cast<double>(sigmoid(x));
    case KILN_ACTIVATION_RELU: return value > 0 || std::isnan(value) ? value : 0;
    case KILN_ACTIVATION_TANH: return static_cast<double>(std::tanh(x));
    case KILN_ACTIVATION_CLIPPED_RELU: return between(value, 0, coef);
    case KILN_ACTIVATION_LEAKY_RELU: return value > 0 ? value : coef * value;
    case KILN_ACTIVATION_ELU: return value > 0 ? value : static_cast<double>(coef * std::expm1(x));
    case KILN_ACTIVATION_GELU_ERF:
      return static_cast<double>(x / 2 * std::erfc(-x / std::numbers::sqrt2_v<Real>));
    case KILN_ACTIVATION_GELU_TANH:  // (1 + tanh(t)) / 2 is the sigmoid of 2 t
      return static_cast<double>(x * sigmoid(2 * gelu_inner(x)));
    case KILN_ACTIVATION_SILU: return static_cast<double>(x * sigmoid(x));
    case KILN_ACTIVATION_SOFTPLUS:
      return static_cast<double>(std::max(x, Real{0}) + std::log1p(std::exp(-std::fabs(x))));
    case KILN_ACTIVATION_HARD_SWISH:
      return value <= -3 ? 0 : static_cast<double>(x * std::min((x + 3) / 6, Real{1}));
    case KILN_ACTIVATION_ABS: return std::fabs(value);
    case KILN_ACTIVATION_EXP: return static_cast<double>(std::exp(x));
    case KILN_ACTIVATION_LOG: return std::log(value);
    case KILN_ACTIVATION_SQRT: return std::sqrt(value);
    case KILN_ACTIVATION_SQUARE: return value * value;
    case KILN_ACTIVATION_POW:
      return static_cast<double>(coef * std::pow(static_cast<Real>(value), Real{coef2}));
    case KILN_ACTIVATION_MISH: return static_cast<double>(x * std::tanh(std::log1p(std::exp(x))));
    case KILN_ACTIVATION_HARD_SIGMOID: return between(std::fma(coef, value, coef2), 0, 1);
    case KILN_ACTIVATION_CLIP: return between(value, coef, coef2);
    case KILN_ACTIVATION_LINEAR: return std::fma(coef, value, coef2);
  }
  return std::nan("");
}

double activation_gradient(const Activation& activation, double x) {
  switch (activation.mode) {
    case KILN_ACTIVATION_HARD_SWISH:
      if (std::isnan(x)) return x;
      return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
    case KILN_ACTIVATION_LEAKY_RELU: return std::isnan(x) ? x : x > 0 ? 1 : activation.coefficient;
    case KILN_ACTIVATION_ABS: return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
    case KILN_ACTIVATION_LOG: return 1 / x;
    case KILN_ACTIVATION_SQUARE: return 2 * x;
    case KILN_ACTIVATION_POW: return static_cast<double>(slope_at(activation, x));
    case KILN_ACTIVATION_HARD_SIGMOID:
      return activation.coefficient *
             is_between(std::fma(activation.coefficient, x, activation.coefficient2), 0, 1);
    default: break;
  }
  if (gradient_from_output(activation))
    return activation_gradient_from_output(activation, activate(activation, x));
  return static_cast<double>(slope_at(activation, far_enough(x)));
}

double activation_gradient_from_output(const Activation& activation, double y) {
  const double coef = activation.coefficient;
  switch (activation.mode) {
    case KILN_ACTIVATION_IDENTITY: return 1;
    case KILN_ACTIVATION_SIGMOID: return y * (1 - y);
    case KILN_ACTIVATION_RELU: return std::isnan(y) ? y : y > 0 ? 1 : 0;
    case KILN_ACTIVATION_TANH: return (1 - y) * (1 + y);
    case KILN_ACTIVATION_CLIPPED_RELU: return is_between(y, 0, coef);
    case KILN_ACTIVATION_LEAKY_RELU: return std::isnan(y) ? y : y > 0 ? 1 : coef;
    case KILN_ACTIVATION_ELU: return y > 0 ? 1 : y + coef;
    case KILN_ACTIVATION_EXP: return y;
    case KILN_ACTIVATION_SQRT: return 0.5 / y;
    case KILN_ACTIVATION_CLIP: return is_between(y, coef, activation.coefficient2);
    case KILN_ACTIVATION_LINEAR: return coef;
    default: return std::nan("");
  }
}

bool gradient_crosses_zero(kilnActivationMode_t mode) {
  switch (mode) {
    case KILN_ACTIVATION_GELU_ERF:
    case KILN_ACTIVATION_GELU_TANH:
    case KILN_ACTIVATION_SILU:
    case KILN_ACTIVATION_HARD_SWISH:
    case KILN_ACTIVATION_MISH: return true;
    default: return false;
  }
}

double brief_error(DataType result) { return size_of(result) == 2 ? 0x1p-14 : 0; }

bool is_piecewise_linear(kilnActivationMode_t mode) {
  switch (mode) {
    case KILN_ACTIVATION_RELU:
    case KILN_ACTIVATION_CLIPPED_RELU:
    case KILN_ACTIVATION_LEAKY_RELU:
    case KILN_ACTIVATION_ABS:
    case KILN_ACTIVATION_HARD_SIGMOID:
    case KILN_ACTIVATION_CLIP:
    case KILN_ACTIVATION_LINEAR: return true;
    default: return false;
  }
}

}  // namespace kiln::reference
