// Shared by the kernels of normalizations: where tensors lie, and the activation of an element.
#pragma once

#include "common/activation.cuh"
#include "common/block_layout.cuh"
#include "normalization/normalization_params.h"

using X = STRIDES(X);
using R = STRIDES(RESIDUAL);
using DY = STRIDES(DY);
using DR = STRIDES(DRESIDUAL);
using Out = STRIDES(OUT);

constexpr bool BRIEF = sizeof(element_t) == 2;  // brief functions suffice

// The activation's derivative at its argument p.
device_inline compute_t slope_at(compute_t p, const Coefficients<compute_t>& coef) {
  return activation_slope<ACTIVATION, BRIEF>(FROM_OUTPUT ? activate<ACTIVATION, BRIEF>(p, coef) : p,
                                             coef);
}
