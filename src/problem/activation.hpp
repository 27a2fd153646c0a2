// Activation functions, as descriptors and problems name them.
#pragma once

#include <string>

#include "core/enumeration.hpp"

namespace kiln {

struct Activation {
  kilnActivationMode_t mode = KILN_ACTIVATION_IDENTITY;
  // coef and coef2 of kiln/activation.h; 0 where the mode has none.
  double coefficient = 0, coefficient2 = 0;

  friend bool operator==(const Activation&, const Activation&) = default;
};

// Throws BAD_PARAM naming mode, coef or coef2. Makes a coefficient 0 that the mode does not have.
Activation make_activation(const Activation& activation);

// Whether the gradient is a function of y (true), or of x (leaky_relu of a negative slope too,
// whose y is positive on both sides).
bool gradient_from_output(const Activation& activation);

int coefficients_of(kilnActivationMode_t mode);  // 0, 1 or 2
// Coefficients that `kiln` takes without --coef: those of PyTorch's ReLU6, LeakyReLU and ELU, of
// ONNX's HardSigmoid and Clip, x^2, and x.
Activation default_activation(kilnActivationMode_t mode);

// "--act elu --coef 0.5 ", as problem lines have it.
std::string print_activation(const Activation& activation);

}  // namespace kiln
