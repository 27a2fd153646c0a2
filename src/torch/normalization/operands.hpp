// What normalizations read.
#pragma once

#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"
#include "torch/plans/normalization_plan.hpp"

namespace kiln::torch {

// Operands that every pass over x has, those that are defined; copies own what is not in the layout
// of the results.
struct NormalizedOperands {
  NormalizationOperands list;
  Tensor x_copy, residual_copy;

  NormalizedOperands(const Tensor& x, const Tensor& residual, const Tensor& weight,
                     const Tensor& bias) {
    const Format format = format_of(x);
    list.x = in_format(x, format, x_copy).data();
    if (residual.defined()) list.residual = in_format(residual, format, residual_copy).data();
    if (weight.defined()) list.scale = weight.data();
    if (bias.defined()) list.bias = bias.data();
  }
};

}  // namespace kiln::torch
