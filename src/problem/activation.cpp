#include "problem/activation.hpp"

#include <cmath>

#include "core/error.hpp"

namespace kiln {

Activation make_activation(kilnActivationMode_t mode, double coefficient) {
  check_enumerator("mode", mode);
  if (!has_coefficient(mode)) return {mode, 0};
  const bool any_sign = mode == KILN_ACTIVATION_LEAKY_RELU;
  if (!std::isfinite(coefficient) || (coefficient < 0 && !any_sign))
    fail(KILN_STATUS_BAD_PARAM, "coef is ", coefficient, "; expected a finite value",
         any_sign ? "" : " of at least 0");
  return {mode, coefficient};
}

bool gradient_from_output(const Activation& activation) {
  switch (activation.mode) {
    case KILN_ACTIVATION_IDENTITY:
    case KILN_ACTIVATION_SIGMOID:
    case KILN_ACTIVATION_RELU:
    case KILN_ACTIVATION_TANH:
    case KILN_ACTIVATION_CLIPPED_RELU:
    case KILN_ACTIVATION_ELU: return true;
    case KILN_ACTIVATION_LEAKY_RELU: return activation.coefficient >= 0;
    default: return false;
  }
}

bool has_coefficient(kilnActivationMode_t mode) {
  return mode == KILN_ACTIVATION_CLIPPED_RELU || mode == KILN_ACTIVATION_LEAKY_RELU ||
         mode == KILN_ACTIVATION_ELU;
}

double default_coefficient(kilnActivationMode_t mode) {
  switch (mode) {
    case KILN_ACTIVATION_CLIPPED_RELU: return 6;
    case KILN_ACTIVATION_LEAKY_RELU: return 0.01;
    case KILN_ACTIVATION_ELU: return 1;
    default: return 0;
  }
}

}  // namespace kiln
