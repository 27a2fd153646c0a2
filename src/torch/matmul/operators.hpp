// Products of matrices with a bias, a residual and an activation, as linear layers have them, in
// the form that PyTorch's dispatcher calls.
#pragma once

#include "torch/libtorch/libtorch.hpp"

namespace kiln::torch {

// (Tensor a, Tensor b, Tensor? bias, Tensor? residual, int activation, float coefficient, bool
// tf32)
// -> Tensor
// act(a b + bias + residual), row by row. a is {M, K} and b {K, N}, or each with a batch before
// them; the bias has N elements, the residual the result's sizes. tf32: whether f32 may be
// multiplied in TF32 on a GPU.
void matmul_bias_activation(Value* stack, std::uint64_t arguments, std::uint64_t results);

}  // namespace kiln::torch
