#include <algorithm>
#include <bit>

#include "torch/channels/operators.hpp"
#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"

namespace kiln::torch {
namespace {

Extents sizes_of_numbers(const Tensor& x) {
  Extents sizes{};
  std::fill_n(sizes.begin(), x.rank(), 1);
  sizes[0] = x.size(0);
  sizes[1] = x.size(1);
  return sizes;
}

Refusal check_tensor(const Tensor& x) {
  if (const Refusal refusal = check_input(x); refusal != nullptr) return refusal;
  return x.rank() < 3 ? "no dimension of space" : nullptr;
}

Refusal check_numbers(const Tensor& x, const Tensor& numbers) {
  if (const Refusal refusal = check_tensor(x); refusal != nullptr) return refusal;
  if (check_gradient(x, numbers, sizes_of_numbers(x)) != nullptr)
    return "not one number of the tensor's type and device for each channel of each image";
  return nullptr;
}

PlanRequest::Side dense(const Tensor& x, const Extents& sizes) {
  return {sizes, dense_strides(format_of(x), x.rank(), sizes)};
}

// Runs a pass over x, and over `other` where it has one, both of which were checked; the result has
// `sizes`. Undefined if Kiln has no kernel for it.
Tensor run(Pass pass, const Tensor& x, const Tensor& other, const Extents& sizes, double factor) {
  const Format format = format_of(x);
  PlanRequest request = request_of(pass, x);
  if (other.defined()) request.b = side_in_format(other, format);
  request.c = dense(x, sizes);
  request.coefficient = std::bit_cast<std::uint64_t>(factor);
  const Step step(request);
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return {};
  Tensor x_copy, other_copy;
  Tensor out = Tensor::empty(x, x.rank(), sizes, request.c.strides);
  Operands operands;
  operands.a = in_format(x, format, x_copy).data();
  if (other.defined()) operands.b = in_format(other, format, other_copy).data();
  operands.c = out.mutable_data();
  step.run(operands);
  return out;
}

double share_of_one(const Tensor& x) {
  return static_cast<double>(x.size(0)) * static_cast<double>(x.size(1)) /
         static_cast<double>(x.elements());
}

// Whether there is a result, which then is the operator's.
bool gave(Tensor& result, Value* stack) {
  if (!result.defined()) return false;
  stack[0] = give_tensor(std::move(result));
  return true;
}

void note(Pass pass, const Tensor& x, Refusal refusal) {
  if (refusal != nullptr) note_refusal(pass, x, Tensor(), {}, refusal);
}

}  // namespace

void channel_means(Value* stack, std::uint64_t, std::uint64_t) {
  const Tensor x = take_tensor(stack[0]);
  Tensor out;
  const Refusal refusal = check_tensor(x);
  if (refusal == nullptr)
    out = run(Pass::sum_channels, x, Tensor(), sizes_of_numbers(x), share_of_one(x));
  note(Pass::sum_channels, x, refusal);
  if (gave(out, stack)) return;
  stack[0] = share_tensor(x);
  call_python("kiln_torch::native_channel_means", stack, 1);
}

void multiply_channels(Value* stack, std::uint64_t, std::uint64_t) {
  const Tensor x = take_tensor(stack[0]), numbers = take_tensor(stack[1]);
  Tensor out;
  const Refusal refusal = check_numbers(x, numbers);
  if (refusal == nullptr) out = run(Pass::multiply, x, numbers, sizes_of(x), 1);
  note(Pass::multiply, x, refusal);
  if (gave(out, stack)) return;
  stack[0] = share_tensor(x);
  stack[1] = share_tensor(numbers);
  call_python("kiln_torch::native_multiply_channels", stack, 1);
}

void multiply_channels_backward(Value* stack, std::uint64_t, std::uint64_t) {
  const Tensor dy = take_tensor(stack[0]), x = take_tensor(stack[1]);
  const Tensor numbers = take_tensor(stack[2]);
  Refusal refusal = check_numbers(x, numbers);
  if (refusal == nullptr) refusal = check_gradient(x, dy, sizes_of(x));
  note(Pass::multiply, x, refusal);
  Tensor dx, dnumbers;
  if (refusal == nullptr) {
    // The layout of x, whatever that of dy: the sums read both.
    Tensor dy_copy;
    const Tensor& gradient = in_format(dy, format_of(x), dy_copy);
    const Tensor products = run(Pass::multiply, x, gradient, sizes_of(x), 1);
    if (products.defined())
      dnumbers = run(Pass::sum_channels, products, Tensor(), sizes_of_numbers(x), 1);
    if (dnumbers.defined()) dx = run(Pass::multiply, gradient, numbers, sizes_of(x), 1);
  }
  if (gave(dx, stack)) {
    stack[1] = give_tensor(std::move(dnumbers));
    return;
  }
  stack[0] = share_tensor(dy);
  stack[1] = share_tensor(x);
  stack[2] = share_tensor(numbers);
  call_python("kiln_torch::native_multiply_channels_backward", stack, 2);
}

void add_channels(Value* stack, std::uint64_t, std::uint64_t) {
  const Tensor x = take_tensor(stack[0]), numbers = take_tensor(stack[1]);
  const auto factor = std::bit_cast<double>(stack[2]);
  Tensor out;
  const Refusal refusal = check_numbers(x, numbers);
  if (refusal == nullptr) out = run(Pass::add_channels, x, numbers, sizes_of(x), factor);
  note(Pass::add_channels, x, refusal);
  if (gave(out, stack)) return;
  stack[0] = share_tensor(x);
  stack[1] = share_tensor(numbers);
  stack[2] = std::bit_cast<Value>(factor);
  call_python("kiln_torch::native_add_channels", stack, 1);
}

}  // namespace kiln::torch
