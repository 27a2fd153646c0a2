// The arguments of aten::convolution and aten::convolution_backward, and the check whether Kiln
// serves a call.
#pragma once

#include <array>
#include <cstdint>

#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

// The arguments that are not tensors, with one element for each dimension of space.
struct Geometry {
  int spatial = 0;
  std::array<std::int64_t, 3> stride{}, padding{}, padding_after{}, dilation{}, output_padding{};
  std::int64_t groups = 1;
  bool transposed = false;
};

// The same arguments as PyTorch passed them, kept for a native call.
struct Arguments {
  Integers stride, padding, dilation, output_padding;
  bool transposed = false;
  std::int64_t groups = 1;
  // Whether the padding may have two numbers for each dimension of space: all before the first
  // element, then all after the last one. Kiln's own operators allow it, PyTorch's do not.
  bool by_side = false;

  static Arguments take(const Value* from_stride);  // stride, ..., groups: six Values
  bool has_sides(int spatial) const {
    return by_side && padding.count == 2 * static_cast<std::size_t>(spatial);
  }
};

// The reason why PyTorch has to serve a call, a static text; null if Kiln can serve it.
using Refusal = const char*;

// Whether the type is f32, f64, f16 or bf16.
bool is_served(std::int32_t type);

// Whether a tensor's last element lies less than 2^31 elements after its first.
bool has_short_span(const Tensor& tensor);

// Checks what both operators have in common: types, devices, sizes. Without a refusal, sets
// `geometry` and the sizes of the result, `y_sizes`.
Refusal check_call(const Tensor& x, const Tensor& w, const Arguments& arguments, Geometry& geometry,
                   Extents& y_sizes);

// Checks the bias of a forward call, which may be undefined.
Refusal check_bias(const Tensor& x, const Tensor& bias, std::int64_t channels);

// Checks a tensor like the result, such as dy, the gradient that a backward call receives.
Refusal check_like(const Tensor& x, const Tensor& dy, const Extents& y_sizes);
// The same where the last element also has to lie less than 2^31 elements after the first.
Refusal check_gradient(const Tensor& x, const Tensor& dy, const Extents& y_sizes);

}  // namespace kiln::torch
