// kiln::pool and its gradient.
#include <algorithm>
#include <array>

#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"
#include "torch/pooling/operators.hpp"

namespace kiln::torch {
namespace {

// The poolings of the operators, in their order, and Kiln's.
constexpr std::array modes{KILN_POOLING_MAX, KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                           KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING};

// Windows over a tensor x.
struct Windows {
  std::array<Integers, 4> lists;  // window, stride, padding, dilation
  bool ceil_mode = false;
  std::int64_t mode = 0;
  // Set by check():
  Geometry geometry{};
  std::array<std::int64_t, 3> window{};
  Extents y_sizes{};

  static Windows take(const Value* from_lists);
  void share(Value* from_lists) const;
  Refusal check(int rank, const Extents& x_sizes);
  // The request, without tensors. like: of their type, on their device.
  PlanRequest request(Pass pass, const Tensor& like) const;
};

Windows Windows::take(const Value* from_lists) {
  Windows out;
  for (std::size_t i = 0; i < 4; ++i) out.lists[i] = take_integers(from_lists[i]);
  out.ceil_mode = (from_lists[4] & 0xff) != 0;
  out.mode = static_cast<std::int64_t>(from_lists[5]);
  return out;
}

void Windows::share(Value* from_lists) const {
  for (std::size_t i = 0; i < 4; ++i)
    from_lists[i] =
        give_integers(std::span(lists[i].values).first(std::min<std::size_t>(lists[i].count, 5)));
  from_lists[4] = ceil_mode ? 1 : 0;
  from_lists[5] = static_cast<Value>(mode);
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

Refusal Windows::check(int rank, const Extents& x_sizes) {
  const int spatial = rank - 2;
  if (spatial < 1) return "no dimension of space";
  if (mode < 0 || mode >= static_cast<std::int64_t>(modes.size())) return "no mode of a pooling";
  constexpr std::int64_t most = 1 << 16;
  for (const Integers& list : lists)
    if (list.count != static_cast<std::size_t>(spatial))
      return "a list has not one number for each dimension of space";
  const auto& [windows, strides, paddings, dilations] = lists;
  y_sizes = {x_sizes[0], x_sizes[1]};
  for (int i = 0; i < spatial; ++i) {
    window[i] = windows.values[i];
    geometry.stride[i] = strides.values[i];
    geometry.padding[i] = geometry.padding_after[i] = paddings.values[i];
    geometry.dilation[i] = dilations.values[i];
    for (const std::int64_t value : {window[i], geometry.stride[i], geometry.dilation[i]})
      if (value < 1 || value > most) return "a window, stride or dilation is out of range";
    if (geometry.padding[i] < 0 || geometry.padding[i] > window[i] / 2)
      return "a padding is out of range";
    y_sizes[i + 2] = pooled_size(x_sizes[i + 2], window[i], geometry.stride[i], geometry.padding[i],
                                 geometry.dilation[i], ceil_mode);
    if (y_sizes[i + 2] < 1) return "the window is larger than the padded input";
  }
  geometry.spatial = spatial;
  return nullptr;
}

PlanRequest Windows::request(Pass pass, const Tensor& like) const {
  PlanRequest out = request_of(like, geometry);
  out.pass = pass;
  out.math = KILN_MATH_DEFAULT;
  out.pooling = modes[static_cast<std::size_t>(mode)];
  out.ceil_mode = ceil_mode ? 1 : 0;
  std::ranges::copy(window, out.b.sizes.begin());
  return out;
}

}  // namespace

void pool(Value* stack, std::uint64_t, std::uint64_t) {
  const Tensor x = take_tensor(stack[0]);
  Windows windows = Windows::take(stack + 1);
  const auto native = [&] {
    stack[0] = share_tensor(x);
    windows.share(stack + 1);
    call_python("kiln_torch::native_pool", stack, 1);
  };
  Refusal refusal = check_input(x);
  if (refusal == nullptr) refusal = windows.check(x.rank(), sizes_of(x));
  if (refusal != nullptr) {
    note_refusal(Pass::pool, x, Tensor(), {}, refusal);
    return native();
  }
  const Format format = format_of(x);
  PlanRequest request = windows.request(Pass::pool, x);
  request.a = side_in_format(x, format);
  request.c = {windows.y_sizes, dense_strides(format, x.rank(), windows.y_sizes)};
  const Step step(request);
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return native();
  Tensor copy, y = Tensor::empty(x, x.rank(), request.c.sizes, request.c.strides);
  Operands operands;
  operands.a = in_format(x, format, copy).data();
  operands.c = y.mutable_data();
  step.run(operands);
  stack[0] = give_tensor(std::move(y));
}

void pool_backward(Value* stack, std::uint64_t, std::uint64_t) {
  const Tensor dy = take_tensor(stack[0]), x = take_optional_tensor(stack[1]);
  const Integers given = take_integers(stack[2]);
  Windows windows = Windows::take(stack + 3);
  const auto native = [&] {
    stack[0] = share_tensor(dy);
    stack[1] = share_optional_tensor(x);
    stack[2] = give_integers(std::span(given.values).first(std::min<std::size_t>(given.count, 5)));
    windows.share(stack + 3);
    call_python("kiln_torch::native_pool_backward", stack, 1);
  };
  Extents sizes{};
  std::copy_n(given.values.begin(), max_rank, sizes.begin());
  if (x.defined()) sizes = sizes_of(x);
  const Tensor& like = x.defined() ? x : dy;
  Refusal refusal = check_input(like);
  if (refusal == nullptr && given.count != static_cast<std::size_t>(like.rank()))
    refusal = "the input's sizes are not as many as the gradient's";
  if (refusal == nullptr && windows.mode == 0 && !x.defined())
    refusal = "a maximum's gradient without the input";
  if (refusal == nullptr) refusal = windows.check(like.rank(), sizes);
  if (refusal == nullptr) refusal = check_gradient(like, dy, windows.y_sizes);
  if (refusal != nullptr) {
    note_refusal(Pass::pool_gradient, like, Tensor(), {}, refusal);
    return native();
  }
  const Format format = format_of(like);
  PlanRequest request = windows.request(Pass::pool_gradient, like);
  request.residual_strides = dense_strides(format, like.rank(), sizes);
  request.a =
      x.defined() ? side_in_format(x, format) : PlanRequest::Side{sizes, request.residual_strides};
  request.c = {windows.y_sizes, side_in_format(dy, format).strides};
  const Step step(request);
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return native();
  Tensor x_copy, dy_copy;
  Tensor dx = Tensor::empty(like, like.rank(), sizes, request.residual_strides);
  Operands operands;
  if (x.defined()) operands.a = in_format(x, format, x_copy).data();
  operands.c = const_cast<void*>(in_format(dy, format, dy_copy).data());
  operands.residual = dx.mutable_data();
  step.run(operands);
  stack[0] = give_tensor(std::move(dx));
}

}  // namespace kiln::torch
