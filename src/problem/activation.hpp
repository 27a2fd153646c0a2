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

// Checks an activation, and sets coefficients that its mode does not have to 0. Throws BAD_PARAM
// naming mode, coef or coef2.
Activation make_activation(const Activation& activation);

// Whether the gradient is computed from y; otherwise it needs x, as for leaky_relu with a negative
// slope, whose y is positive on both sides.
bool gradient_from_output(const Activation& activation);

int coefficients_of(kilnActivationMode_t mode);  // 0, 1 or 2
// The coefficients that `kiln` uses without --coef: those of PyTorch's ReLU6, LeakyReLU and ELU,
// of ONNX's HardSigmoid and Clip, of x^2, and of x.
Activation default_activation(kilnActivationMode_t mode);

// The flags for problem lines: "--act elu --coef 0.5 ".
std::string print_activation(const Activation& activation);

}  // namespace kiln
