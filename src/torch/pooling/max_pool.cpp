// kiln::max_pool and its gradient.
#include <algorithm>
#include <array>

#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"
#include "torch/pooling/operators.hpp"

namespace kiln::torch {
namespace {

struct PoolCall {
  Tensor x;
  std::array<Integers, 4> lists;  // window, stride, padding, dilation
  bool ceil_mode = false;
  // Set by check():
  Geometry geometry{};
  std::array<std::int64_t, 3> window{};
  Extents y_sizes{};
  Format format{};

  static PoolCall take(const Value* from_input);
  void share(Value* from_input) const;
  Refusal check();
  PlanRequest request(Pass pass) const;
};

PoolCall PoolCall::take(const Value* from_input) {
  PoolCall call;
  call.x = take_tensor(from_input[0]);
  for (std::size_t i = 0; i < 4; ++i) call.lists[i] = take_integers(from_input[1 + i]);
  call.ceil_mode = (from_input[5] & 0xff) != 0;
  return call;
}

void PoolCall::share(Value* from_input) const {
  from_input[0] = share_tensor(x);
  for (std::size_t i = 0; i < 4; ++i)
    from_input[1 + i] =
        give_integers(std::span(lists[i].values).first(std::min<std::size_t>(lists[i].count, 5)));
  from_input[5] = ceil_mode ? 1 : 0;
}

// As PyTorch has it: with ceil_mode a last window may reach beyond x and its padding, if it begins
// in x or in the padding before it.
std::int64_t pooled_size(std::int64_t size, std::int64_t window, std::int64_t stride,
                         std::int64_t padding, std::int64_t dilation, bool ceil_mode) {
  const std::int64_t rest = size + 2 * padding - dilation * (window - 1) - 1;
  if (rest < 0 && !ceil_mode) return 0;
  std::int64_t out = (rest + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (out - 1) * stride >= size + padding) --out;
  return out;
}

Refusal PoolCall::check() {
  if (const Refusal refusal = check_input(x); refusal != nullptr) return refusal;
  const int spatial = x.rank() - 2;
  if (spatial < 1) return "no dimension of space";
  constexpr std::int64_t most = 1 << 16;
  for (const Integers& list : lists)
    if (list.count != static_cast<std::size_t>(spatial))
      return "a list has not one number for each dimension of space";
  const auto& [windows, strides, paddings, dilations] = lists;
  y_sizes = {x.size(0), x.size(1)};
  for (int i = 0; i < spatial; ++i) {
    window[i] = windows.values[i];
    geometry.stride[i] = strides.values[i];
    geometry.padding[i] = paddings.values[i];
    geometry.dilation[i] = dilations.values[i];
    for (const std::int64_t value : {window[i], geometry.stride[i], geometry.dilation[i]})
      if (value < 1 || value > most) return "a window, stride or dilation is out of range";
    if (geometry.padding[i] < 0 || geometry.padding[i] > window[i] / 2)
      return "a padding is out of range";
    y_sizes[i + 2] = pooled_size(x.size(i + 2), window[i], geometry.stride[i], geometry.padding[i],
                                 geometry.dilation[i], ceil_mode);
    if (y_sizes[i + 2] < 1) return "the window is larger than the padded input";
  }
  geometry.spatial = spatial;
  format = format_of(x);
  return nullptr;
}

PlanRequest PoolCall::request(Pass pass) const {
  PlanRequest out = request_of(x, geometry);
  out.pass = pass;
  out.math = KILN_MATH_DEFAULT;
  out.a = side_in_format(x, format);
  std::ranges::copy(window, out.b.sizes.begin());
  out.c = {y_sizes, dense_strides(format, x.rank(), y_sizes)};
  return out;
}

void note(const PoolCall& call, Pass pass, Refusal refusal) {
  note_refusal(pass, call.x, Tensor(), {}, refusal);
}

}  // namespace

void max_pool(Value* stack, std::uint64_t, std::uint64_t) {
  PoolCall call = PoolCall::take(stack);
  const auto native = [&] {
    call.share(stack);
    call_python("kiln_torch::native_max_pool", stack, 1);
  };
  if (const Refusal refusal = call.check(); refusal != nullptr) {
    note(call, Pass::max_pool, refusal);
    return native();
  }
  const PlanRequest request = call.request(Pass::max_pool);
  const Step step(request);
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return native();
  Tensor copy, y = Tensor::empty(call.x, call.x.rank(), request.c.sizes, request.c.strides);
  Operands operands;
  operands.a = in_format(call.x, call.format, copy).data();
  operands.c = y.mutable_data();
  step.run(operands);
  stack[0] = give_tensor(std::move(y));
}

void max_pool_backward(Value* stack, std::uint64_t, std::uint64_t) {
  const Tensor dy = take_tensor(stack[0]);
  PoolCall call = PoolCall::take(stack + 1);
  const auto native = [&] {
    stack[0] = share_tensor(dy);
    call.share(stack + 1);
    call_python("kiln_torch::native_max_pool_backward", stack, 1);
  };
  Refusal refusal = call.check();
  if (refusal == nullptr) refusal = check_gradient(call.x, dy, call.y_sizes);
  if (refusal != nullptr) {
    note(call, Pass::max_pool_gradient, refusal);
    return native();
  }
  PlanRequest request = call.request(Pass::max_pool_gradient);
  request.c.strides = side_in_format(dy, call.format).strides;
  const Extents sizes = sizes_of(call.x);
  request.residual_strides = dense_strides(call.format, call.x.rank(), sizes);
  const Step step(request);
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return native();
  const Tensor& x = call.x;
  Tensor x_copy, dy_copy;
  Tensor dx = Tensor::empty(x, x.rank(), sizes, request.residual_strides);
  Operands operands;
  operands.a = in_format(x, call.format, x_copy).data();
  operands.c = const_cast<void*>(in_format(dy, call.format, dy_copy).data());
  operands.residual = dx.mutable_data();
  step.run(operands);
  stack[0] = give_tensor(std::move(dx));
}

}  // namespace kiln::torch
