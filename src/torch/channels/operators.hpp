// Operators between a tensor and one number for each channel of each image, as
// squeeze-and-excitation has them, in the form that PyTorch's dispatcher calls. The numbers are a
// tensor of the same type with sizes {N, C, 1, ...}.
#pragma once

#include "torch/libtorch/libtorch.hpp"

namespace kiln::torch {

// (Tensor input) -> Tensor
// The mean of each channel of each image, {N, C, 1, ...}.
void channel_means(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor input, Tensor numbers) -> Tensor
// input * numbers.
void multiply_channels(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor grad_output, Tensor input, Tensor numbers) -> (Tensor, Tensor)
// The gradients of input, grad_output * numbers, and of the numbers, the sums of grad_output *
// input.
void multiply_channels_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor input, Tensor numbers, float factor) -> Tensor
// input + factor * numbers.
void add_channels(Value* stack, std::uint64_t arguments, std::uint64_t results);

}  // namespace kiln::torch
