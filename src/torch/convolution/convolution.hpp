// A call of aten::convolution or aten::convolution_backward: what PyTorch passed, and whether Kiln
// serves it.
#pragma once

#include <array>
#include <cstdint>

#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

// The arguments that are not tensors, those of space one for each dimension of space.
struct Geometry {
  int spatial = 0;
  std::array<std::int64_t, 3> stride{}, padding{}, dilation{}, output_padding{};
  std::int64_t groups = 1;
  bool transposed = false;
};

// As PyTorch passed them, kept for a native call.
struct Arguments {
  Integers stride, padding, dilation, output_padding;
  bool transposed = false;
  std::int64_t groups = 1;

  static Arguments take(const Value* from_stride);  // stride, ..., groups: six Values
};

// Why a call is PyTorch's own; null: Kiln can serve it. Texts are static.
using Refusal = const char*;

// Checks all that both operators have in common: types, devices, sizes. On acceptance `geometry` is
// set, and `y_sizes` to the sizes of the result.
Refusal check_call(const Tensor& x, const Tensor& w, const Arguments& arguments, Geometry& geometry,
                   Extents& y_sizes);

// The bias of a forward call, which may be missing.
Refusal check_bias(const Tensor& x, const Tensor& bias, std::int64_t channels);

// The gradient that a backward call begins with.
Refusal check_gradient(const Tensor& x, const Tensor& dy, const Extents& y_sizes);

}  // namespace kiln::torch
