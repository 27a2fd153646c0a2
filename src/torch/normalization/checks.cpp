#include "torch/normalization/checks.hpp"

#include <algorithm>
#include <bit>

#include "torch/convolution/serving.hpp"

namespace kiln::torch {

Refusal check_input(const Tensor& x) {
  if (x.rank() < 2 || x.rank() > max_rank)
    return "not a batch of channels with at most three dimensions of space";
  if (!is_served(x.type())) return "the type is not f32, f64, f16 or bf16";
  if (x.elements() == 0) return "an empty batch or tensor";
  if (!has_short_span(x)) return "a tensor spans 2^31 elements or more";
  return nullptr;
}

Refusal check_channels(const Tensor& x, const Tensor& numbers) {
  if (numbers.type() != type_of_channels(x))
    return "a channel's numbers are not f32, or f64 as the tensor";
  if (!numbers.on_device_of(x)) return "input and a channel's numbers are on different devices";
  if (numbers.rank() != 1 || numbers.size(0) != x.size(1))
    return "a tensor has not one number a channel";
  if (numbers.strides()[0] != 1 && x.size(1) != 1) return "a channel's numbers are not contiguous";
  return nullptr;
}

NormalizationCall NormalizationCall::take(const Value* from_input) {
  NormalizationCall call;
  call.x = take_tensor(from_input[0]);
  call.mean = take_tensor(from_input[1]);
  call.inverse_deviation = take_tensor(from_input[2]);
  call.weight = take_optional_tensor(from_input[3]);
  call.bias = take_optional_tensor(from_input[4]);
  call.residual = take_optional_tensor(from_input[5]);
  call.activation = static_cast<std::int32_t>(from_input[6]);
  call.coefficient = std::bit_cast<double>(from_input[7]);
  return call;
}

Refusal NormalizationCall::check() const {
  Refusal refusal = check_input(x);
  for (const Tensor* numbers : {&mean, &inverse_deviation, &weight, &bias})
    if (refusal == nullptr && numbers->defined()) refusal = check_channels(x, *numbers);
  if (refusal == nullptr && weight.defined() != bias.defined())
    refusal = "a weight without a bias, or a bias without a weight";
  if (refusal == nullptr && residual.defined()) refusal = check_gradient(x, residual, sizes_of(x));
  return refusal;
}

Extents sizes_of(const Tensor& x) {
  Extents sizes{};
  std::ranges::copy(x.sizes(), sizes.begin());
  return sizes;
}

std::int32_t type_of_channels(const Tensor& x) {
  const LibTorch& torch = libtorch();
  return x.type() == torch.float64 ? torch.float64 : torch.float32;
}

Format format_of(const Tensor& x) {
  const bool last = suggests_channels_last(x.rank(), x.sizes().data(), x.strides().data());
  return last ? Format::channels_last : Format::contiguous;
}

Tensor new_like(const Tensor& x) {
  const Extents sizes = sizes_of(x);
  return Tensor::empty(x, x.rank(), sizes, dense_strides(format_of(x), x.rank(), sizes));
}

PlanRequest request_of(Pass pass, const Tensor& x) {
  PlanRequest request = request_of(x, Geometry{});
  request.pass = pass;
  request.math = KILN_MATH_DEFAULT;
  request.a = side_in_format(x, format_of(x));
  return request;
}

PlanRequest request_of(Pass pass, const NormalizationCall& call) {
  PlanRequest request = request_of(pass, call.x);
  const Format format = format_of(call.x);
  request.c = {request.a.sizes, dense_strides(format, call.x.rank(), request.a.sizes)};
  request.activation = call.activation;
  request.coefficient = std::bit_cast<std::uint64_t>(call.coefficient);
  request.has_bias = call.weight.defined() ? 1 : 0;
  if (call.residual.defined()) {
    request.has_residual = 1;
    request.residual_strides = side_in_format(call.residual, format).strides;
  }
  return request;
}

}  // namespace kiln::torch
