#include "problem/activation.hpp"

#include <cmath>

#include "core/error.hpp"

namespace kiln {
namespace {

void check_finite(const char* name, double value) {
  if (!std::isfinite(value))
    fail(KILN_STATUS_BAD_PARAM, name, " is ", value, "; expected a finite value");
}

}  // namespace

Activation make_activation(const Activation& activation) {
  const kilnActivationMode_t mode = activation.mode;
  check_enumerator("mode", mode);
  Activation out{mode};
  if (mode == KILN_ACTIVATION_CLIP) {  // its bounds may be infinite
    if (!(activation.coefficient <= activation.coefficient2))
      fail(KILN_STATUS_BAD_PARAM, "coef is ", activation.coefficient, " and coef2 is ",
           activation.coefficient2, "; expected bounds of which coef is at most coef2");
    return activation;
  }
  const int count = coefficients_of(mode);
  const bool any_sign = count == 2 || mode == KILN_ACTIVATION_LEAKY_RELU;
  if (count > 0 && !any_sign &&
      !(std::isfinite(activation.coefficient) && activation.coefficient >= 0))
    fail(KILN_STATUS_BAD_PARAM, "coef is ", activation.coefficient,
         "; expected a finite value of at least 0");
  if (count > 0) {
    check_finite("coef", activation.coefficient);
    out.coefficient = activation.coefficient;
  }
  if (count > 1) {
    check_finite("coef2", activation.coefficient2);
    out.coefficient2 = activation.coefficient2;
  }
  return out;
}

bool gradient_from_output(const Activation& activation) {
  switch (activation.mode) {
    case KILN_ACTIVATION_IDENTITY:
    case KILN_ACTIVATION_SIGMOID:
    case KILN_ACTIVATION_RELU:
    case KILN_ACTIVATION_TANH:
    case KILN_ACTIVATION_CLIPPED_RELU:
    case KILN_ACTIVATION_ELU:
    case KILN_ACTIVATION_EXP:
    case KILN_ACTIVATION_SQRT:
    case KILN_ACTIVATION_CLIP:
    case KILN_ACTIVATION_LINEAR: return true;
    case KILN_ACTIVATION_LEAKY_RELU: return activation.coefficient >= 0;
    default: return false;
  }
}

int coefficients_of(kilnActivationMode_t mode) {
  switch (mode) {
    case KILN_ACTIVATION_CLIPPED_RELU:
    case KILN_ACTIVATION_LEAKY_RELU:
    case KILN_ACTIVATION_ELU: return 1;
    case KILN_ACTIVATION_POW:
    case KILN_ACTIVATION_HARD_SIGMOID:
    case KILN_ACTIVATION_CLIP:
    case KILN_ACTIVATION_LINEAR: return 2;
    default: return 0;
  }
}

std::string print_activation(const Activation& activation) {
  const int count = coefficients_of(activation.mode);
  std::string text = cat("--act ", name_of(activation.mode), " ");
  if (count > 0) text += cat("--coef ", activation.coefficient, " ");
  if (count > 1) text += cat("--coef2 ", activation.coefficient2, " ");
  return text;
}

Activation default_activation(kilnActivationMode_t mode) {
  switch (mode) {
    case KILN_ACTIVATION_CLIPPED_RELU: return {mode, 6};
    case KILN_ACTIVATION_LEAKY_RELU: return {mode, 0.01};
    case KILN_ACTIVATION_ELU: return {mode, 1};
    case KILN_ACTIVATION_POW: return {mode, 1, 2};
    case KILN_ACTIVATION_HARD_SIGMOID: return {mode, 0.2, 0.5};
    case KILN_ACTIVATION_CLIP: return {mode, -HUGE_VAL, HUGE_VAL};
    case KILN_ACTIVATION_LINEAR: return {mode, 1, 0};
    default: return {mode};
  }
}

}  // namespace kiln
