// Pooling's operators, in the form that PyTorch's dispatcher calls.
#pragma once

#include "torch/libtorch/libtorch.hpp"

namespace kiln::torch {

// (Tensor input, SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation,
//  bool ceil_mode, int mode) -> Tensor
// Of batches with one to three dimensions of space; each list has a number for each of them. mode:
// 0 a maximum, 1 an average that counts the padding, 2 one that does not.
void pool(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor grad_output, Tensor? input, SymInt[] input_sizes, SymInt[] kernel_size, ...) -> Tensor
// The gradient of input. A maximum's goes to the first one of each window, so that no indices are
// kept, and asks for input; an average's does not.
void pool_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

}  // namespace kiln::torch
