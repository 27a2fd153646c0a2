// Activation functions, as descriptors and problems name them.
#pragma once

#include "core/enumeration.hpp"

namespace kiln {

struct Activation {
  kilnActivationMode_t mode = KILN_ACTIVATION_IDENTITY;
  // The ceiling of CLIPPED_RELU, the slope of LEAKY_RELU (which may be negative), the alpha of ELU;
  // 0 for the others.
  double coefficient = 0;

  friend bool operator==(const Activation&, const Activation&) = default;
};

// Throws BAD_PARAM naming mode or coef. Makes the coefficient 0 where the mode has none.
Activation make_activation(kilnActivationMode_t mode, double coefficient);

// Whether the gradient is a function of y (true), or of x (gelu, silu, softplus, hard-swish, and
// leaky_relu of a negative slope, whose y is positive on both sides).
bool gradient_from_output(const Activation& activation);

bool has_coefficient(kilnActivationMode_t mode);
// What `kiln` takes where no --coef is given: 6, 0.01 and 1, as PyTorch's ReLU6, LeakyReLU and ELU.
double default_coefficient(kilnActivationMode_t mode);

}  // namespace kiln
