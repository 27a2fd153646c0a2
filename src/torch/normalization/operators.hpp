// The operators of normalizations, in the form that PyTorch's dispatcher calls. A channel's numbers
// (mean, inverse deviation, scale, bias and so on) are tensors of C elements, f64 where the
// normalized tensor is f64, else f32.
#pragma once

#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

// (Tensor input) -> Tensor
// The number of elements of each channel, their mean, and the sum of (x - mean)^2: (3, C).
void moments(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor moments, Tensor(a!)? running_mean, Tensor(b!)? running_var, float factor, float epsilon)
//  -> (Tensor mean, Tensor inverse_deviation)
// moments: (3, C), or (parts, 3, C).
void combine_moments(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor input, Tensor mean, Tensor inverse_deviation, Tensor? weight, Tensor? bias,
//  Tensor? residual, int activation, float coefficient, bool own) -> Tensor
// act((x - mean) * inverse_deviation * weight + bias + residual). own: mean and inverse deviation
// are those of x, which only the gradient asks.
void normalize(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor grad_output, Tensor input, Tensor mean, Tensor inverse_deviation, Tensor? weight,
//  Tensor? bias, Tensor? residual, int activation, float coefficient, bool own,
//  bool with_residual) -> (Tensor, Tensor, Tensor, Tensor)
// The gradients of input, residual (no elements if it is not wanted), weight and bias; the last two
// also where there is no weight.
void normalize_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor input, int groups, bool centered, Tensor? weight, Tensor? bias, Tensor? residual,
//  float epsilon, int activation, float coefficient)
//  -> (Tensor result, Tensor mean, Tensor inverse_deviation)
// act((x - mean) * inverse_deviation * weight + bias + residual) by the statistics of x: those of
// `groups` groups of an image's channels, or, where it is 0, of the channels of each pixel. Mean
// and inverse deviation are (N, groups) or (N, pixels); not centered, the mean is 0 and the tensor
// has no elements.
void normalize_rows(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor grad_output, Tensor input, Tensor mean, Tensor inverse_deviation, int groups,
//  bool centered, Tensor? weight, Tensor? bias, Tensor? residual, int activation,
//  float coefficient, bool with_residual) -> (Tensor, Tensor, Tensor, Tensor)
// The gradients of input, residual, weight and bias; no elements of those that are not wanted or
// not there.
void normalize_rows_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation,
//  bool transposed, SymInt[] output_padding, SymInt groups, Tensor? norm_weight, Tensor? norm_bias,
//  Tensor? residual, Tensor(a!)? running_mean, Tensor(b!)? running_var, float factor,
//  float epsilon, int activation, float coefficient)
//  -> (Tensor result, Tensor convolved, Tensor mean, Tensor inverse_deviation)
// convolution_moments, combine_moments and normalize, one after the other.
void block(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor grad_output, Tensor convolved, Tensor mean, Tensor inverse_deviation,
//  Tensor? norm_weight, Tensor? norm_bias, Tensor? residual, int activation, float coefficient,
//  bool with_residual, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride,
//  SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups,
//  bool[3] output_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)
// The gradients of input, weight and bias, as convolution_backward gives them, then those of
// residual, norm_weight and norm_bias, as normalize_backward does.
void block_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

// (Tensor? grad_normalized, Tensor convolved, Tensor mean, Tensor inverse_deviation,
//  Tensor? norm_weight, Tensor? norm_bias, Tensor? residual, int activation, float coefficient,
//  bool with_residual, Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes,
//  SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding,
//  SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)
// Of a convolution whose input is act(norm(convolved) + residual), with the statistics of
// convolved: the gradients of convolved, residual (no elements if it is not wanted), norm_weight,
// norm_bias, weight and bias. grad_output: of the convolution's result; grad_normalized: what else
// reaches its input. A convolution's kernel that can takes both through the activation and makes
// the sums; else one step follows the other.
void link_backward(Value* stack, std::uint64_t arguments, std::uint64_t results);

// The moments of a tensor, by Kiln or, where it refuses, composed of PyTorch's functions.
Tensor moments_of(const Tensor& x);

}  // namespace kiln::torch
