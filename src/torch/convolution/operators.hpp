// Kiln's implementations of aten::convolution, aten::convolution_backward,
// kiln::convolution_bias_activation, convolution_into and convolution_moments, in the form that
// PyTorch's dispatcher calls.
#pragma once

#include "torch/libtorch/libtorch.hpp"

namespace kiln::torch {

// (Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding,
//  SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor
void convolution(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride,
//  SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups,
//  bool[3] output_mask) -> (Tensor, Tensor, Tensor)
void convolution_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor input, Tensor weight, Tensor? bias, Tensor? residual, SymInt[] stride, SymInt[] padding,
//  SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, int activation,
//  float coefficient) -> Tensor
// y = act(conv(x, w) + bias + residual). The padding may have two numbers for each dimension of
// space: those before, then those after.
void convolution_bias_activation(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor(a!) out, ...) -> (): the same, into a tensor or a part of one.
void convolution_into(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation,
//  bool transposed, SymInt[] output_padding, SymInt groups) -> (Tensor, Tensor)
// The convolution, and kiln::moments of its result.
void convolution_moments(Value* stack, std::uint64_t arguments, std::uint64_t results);

// kiln::convolution_backward, with the arguments of convolution_backward().
void fused_convolution_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

}  // namespace kiln::torch
