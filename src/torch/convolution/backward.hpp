// A call of aten::convolution_backward.
#pragma once

#include <array>
#include <optional>

#include "torch/convolution/layout.hpp"
#include "torch/convolution/native.hpp"

namespace kiln::torch {

struct BackwardCall {
  Tensor dy, x, w;
  std::optional<Integers> bias_sizes;
  Arguments arguments;
  std::array<bool, 3> mask{};  // which gradients are wanted: of x, w, bias
  // Set by check():
  Geometry geometry{};
  Extents y_sizes{};
  Format format{};

  static BackwardCall take(const Value* stack);  // grad_output, ..., output_mask: eleven Values
  Refusal check();
};

// The gradients that the mask asks for, by Kiln or, with a refusal or where Kiln is not ready, by
// PyTorch.
Gradients gradients_of(BackwardCall& call, Refusal refusal);

}  // namespace kiln::torch
