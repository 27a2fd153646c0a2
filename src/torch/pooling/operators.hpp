// Maximum pooling's operators, in the form that PyTorch's dispatcher calls.
#pragma once

#include "torch/libtorch/libtorch.hpp"

namespace kiln::torch {

// (Tensor input, SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation,
//  bool ceil_mode) -> Tensor
// Of batches with one to three dimensions of space; each list has a number for each of them.
void max_pool(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor grad_output, Tensor input, ...) -> Tensor
// The gradient of input: it goes to the first maximum of each window, so that no indices are kept.
void max_pool_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

}  // namespace kiln::torch
