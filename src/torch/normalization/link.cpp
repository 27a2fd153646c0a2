// kiln::link_backward: the gradient of a convolution whose input a batch normalization, an addition
// and an activation made of another convolution's result.
#include <algorithm>
#include <array>
#include <bit>

#include "torch/convolution/backward.hpp"
#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"
#include "torch/normalization/operators.hpp"

namespace kiln::torch {
namespace {

struct LinkCall {
  BackwardCall convolution;  // of z = act(norm(x) + residual)
  Tensor dz;                 // what else reaches z; may be undefined
  NormalizationCall of;
  bool with_residual = false;

  bool is_linear() const { return of.activation == KILN_ACTIVATION_IDENTITY; }
  Refusal check() const;  // requires that the convolution was checked
};

// The gradients of x, residual, scale and bias, in the order of kiln::normalize_backward.
using NormGradients = std::array<Tensor, 4>;

bool is_dense(const Tensor& tensor, Format format) {
  const Extents strides = dense_strides(format, tensor.rank(), sizes_of(tensor));
  return std::ranges::equal(tensor.strides(), std::span(strides).first(tensor.strides().size()));
}

// Whether what lies before the convolution fits it.
Refusal LinkCall::check() const {
  const Tensor& z = convolution.x;
  Refusal refusal = of.check();
  if (refusal == nullptr) refusal = check_gradient(of.x, z, sizes_of(of.x));
  if (refusal == nullptr && dz.defined()) refusal = check_gradient(z, dz, sizes_of(z));
  if (refusal == nullptr && convolution.geometry.transposed) refusal = "a transposed convolution";
  if (refusal != nullptr) return refusal;
  for (const Tensor* each : {&of.x, &of.residual})
    if (each->defined() && !is_dense(*each, convolution.format))
      return "the normalized tensor or its residual is not dense in the layout of the results";
  return nullptr;
}

// The convolution's data gradient, on to the normalization's sums.
PlanRequest gradient_request(const LinkCall& call) {
  const BackwardCall& conv = call.convolution;
  PlanRequest request = request_of(conv.x, conv.geometry);
  request.pass = Pass::data_gradient;
  request.a = side_in_format(conv.dy, conv.format);
  request.b = side_in_format(conv.w, conv.format);
  const Extents sizes = sizes_of(conv.x);
  request.c = {sizes, dense_strides(conv.format, conv.x.rank(), sizes)};
  request.alignment = alignment_of({address_in_format(conv.dy, conv.format),
                                    address_in_format(conv.w, conv.format), call.of.x.data()});
  if (call.dz.defined()) {
    request.has_residual = 1;
    request.residual_strides = side_in_format(call.dz, conv.format).strides;
    request.alignment =
        std::min(request.alignment, alignment_of({address_in_format(call.dz, conv.format)}));
  }
  request.has_norm = 1;
  request.has_bias = call.of.weight.defined() ? 1 : 0;
  request.activation = call.of.activation;
  request.coefficient = std::bit_cast<std::uint64_t>(call.of.coefficient);
  if (call.of.residual.defined() && !call.is_linear()) {
    request.has_norm_residual = 1;
    request.alignment = std::min(request.alignment, alignment_of({call.of.residual.data()}));
  }
  return request;
}

PlanRequest rest_request(const LinkCall& call, const PlanRequest& gradient) {
  PlanRequest request = request_of(Pass::normalize_gradient_from_sums, call.of.x);
  request.a = request.b = request.c = gradient.c;
  request.has_bias = gradient.has_bias;
  return request;
}

// By a convolution that carries the gradient to the sums, and a pass for the rest; false where no
// convolution does.
bool run_carried(const LinkCall& call, NormGradients& out) {
  const BackwardCall& conv = call.convolution;
  const PlanRequest request = gradient_request(call);
  const Step gradient(request), rest(rest_request(call, request));
  if (!gradient.ready(Policy::wait) || !rest.ready(Policy::wait)) return false;
  gradient.count(true);
  rest.count(true);
  const Tensor& x = call.of.x;
  const Extents channels{x.size(1)}, one{1};
  Tensor g = Tensor::empty(x, x.rank(), request.c.sizes, request.c.strides);
  Tensor dscale = Tensor::empty(x, type_of_channels(x), 1, channels, one);
  Tensor dbias = Tensor::empty(x, type_of_channels(x), 1, channels, one);

  NormalizationOperands norm;
  norm.x = x.data();
  norm.mean = call.of.mean.data();
  norm.inverse_deviation = call.of.inverse_deviation.data();
  if (call.of.weight.defined()) {
    norm.scale = call.of.weight.data();
    norm.bias = call.of.bias.data();
  }
  if (request.has_norm_residual != 0) norm.residual = call.of.residual.data();
  norm.dscale = dscale.mutable_data();
  norm.dbias = dbias.mutable_data();
  Tensor dy_copy, w_copy, dz_copy;
  Operands operands;
  operands.a = in_format(conv.dy, conv.format, dy_copy).data();
  operands.b = in_format(conv.w, conv.format, w_copy).data();
  if (call.dz.defined()) operands.residual = in_format(call.dz, conv.format, dz_copy).data();
  operands.c = g.mutable_data();
  operands.norm = &norm;
  gradient.run(operands);

  Tensor dx = Tensor::empty(x, x.rank(), request.c.sizes, request.c.strides);
  norm.dy = g.data();
  norm.y = dx.mutable_data();
  rest.run(norm);
  if (!call.with_residual) g = Tensor::empty(x, 1, {0}, one);
  out = {std::move(dx), std::move(g), std::move(dscale), std::move(dbias)};
  return true;
}

// gradient += other, both of the same sizes; `gradient` is no one else's.
void add(Tensor& gradient, const Tensor& other) {
  const Format format = format_of(gradient);
  PlanRequest request = request_of(gradient, Geometry{});
  request.pass = Pass::add;
  request.math = KILN_MATH_DEFAULT;
  request.a = side_in_format(other, format);
  request.c = side_in_format(gradient, format);
  const Step step(request);
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (ready) {
    Tensor copy;
    Operands operands;
    operands.a = in_format(other, format, copy).data();
    operands.c = gradient.mutable_data();
    return step.run(operands);
  }
  Value stack[] = {share_tensor(gradient), share_tensor(other)};
  call_python("kiln_torch::native_add", stack, 1);
  gradient = take_tensor(stack[0]);
}

// One after the other: the convolution's gradient, what else reaches z, the normalization's.
NormGradients run_apart(LinkCall& call, Refusal refusal, Gradients& of_convolution) {
  call.convolution.mask[0] = true;
  of_convolution = gradients_of(call.convolution, refusal);
  Tensor dz = std::move(of_convolution.dx);
  if (call.dz.defined()) add(dz, call.dz);
  const bool linear = call.is_linear();
  Value stack[11] = {share_tensor(dz),
                     share_tensor(call.of.x),
                     share_tensor(call.of.mean),
                     share_tensor(call.of.inverse_deviation),
                     share_optional_tensor(call.of.weight),
                     share_optional_tensor(call.of.bias),
                     linear ? 0 : share_optional_tensor(call.of.residual),
                     static_cast<Value>(call.of.activation),
                     std::bit_cast<Value>(call.of.coefficient),
                     1,
                     call.with_residual && !linear ? Value{1} : Value{0}};
  normalize_backward(stack, 11, 4);
  NormGradients out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = take_tensor(stack[i]);
  if (call.with_residual && linear) out[1] = std::move(dz);
  return out;
}

}  // namespace

void link_backward(Value* stack, std::uint64_t, std::uint64_t) {
  // grad_output, input, ...; before them what else the call has.
  constexpr std::size_t before = 10;
  LinkCall call;
  call.dz = take_optional_tensor(stack[0]);
  call.of = NormalizationCall::take(stack + 1);
  call.with_residual = (stack[9] & 0xff) != 0;
  call.convolution = BackwardCall::take(stack + before);
  const std::array<bool, 3> mask = call.convolution.mask;
  const Refusal refusal = call.convolution.check();
  Gradients of_convolution;
  NormGradients of_norm;
  if (refusal == nullptr && call.check() == nullptr && run_carried(call, of_norm)) {
    call.convolution.mask[0] = false;
    if (mask[1] || mask[2]) of_convolution = gradients_of(call.convolution, refusal);
  } else {
    of_norm = run_apart(call, refusal, of_convolution);
  }
  for (std::size_t i = 0; i < of_norm.size(); ++i) stack[i] = give_tensor(std::move(of_norm[i]));
  stack[4] = give_tensor(std::move(of_convolution.dw));
  stack[5] = give_tensor(std::move(of_convolution.db));
}

}  // namespace kiln::torch
