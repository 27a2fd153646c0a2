// Which normalizations Kiln serves, and what their requests have in common.
#pragma once

#include "torch/convolution/convolution.hpp"
#include "torch/convolution/layout.hpp"
#include "torch/plans/plan_request.hpp"

namespace kiln::torch {

// A tensor that is normalized, and what is given of its channels and its elements.
struct NormalizationCall {
  Tensor x, mean, inverse_deviation, weight, bias, residual;
  std::int32_t activation = KILN_ACTIVATION_IDENTITY;
  double coefficient = 0;
  bool own = false;

  // input, mean, inverse_deviation, weight, bias, residual, activation, coefficient: eight Values.
  static NormalizationCall take(const Value* from_input);
  // Checks all tensors that are defined; x must be.
  Refusal check() const;
};

// Checks the tensor alone.
Refusal check_input(const Tensor& x);
// Checks a tensor with a number for each channel of x.
Refusal check_channels(const Tensor& x, const Tensor& numbers);

Extents sizes_of(const Tensor& x);
// PyTorch's type of a channel's numbers, for tensors of the type of x.
std::int32_t type_of_channels(const Tensor& x);
// The layout of the results.
Format format_of(const Tensor& x);

// A new tensor with the sizes of x in the layout of the results.
Tensor new_like(const Tensor& x);

// The request of a pass over x.
PlanRequest request_of(Pass pass, const Tensor& x);
// The same with everything that the call has.
PlanRequest request_of(Pass pass, const NormalizationCall& call);

}  // namespace kiln::torch
