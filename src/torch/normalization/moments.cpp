// kiln::moments and kiln::combine_moments.
#include <bit>

#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"
#include "torch/normalization/operators.hpp"

namespace kiln::torch {
namespace {

Tensor composed_moments(const Tensor& x) {
  Value stack[1] = {share_tensor(x)};
  call_python("kiln_torch::native_moments", stack, 1);
  return take_tensor(stack[0]);
}

struct CombineCall {
  Tensor moments, running_mean, running_variance;
  double factor = 0, epsilon = 0;

  std::int64_t channels() const { return moments.size(moments.rank() - 1); }

  Refusal check() const {
    const LibTorch& torch = libtorch();
    if (!moments.defined() || moments.rank() < 2 || moments.rank() > 3 ||
        moments.size(moments.rank() - 2) != 3 || moments.elements() == 0)
      return "the moments are not (3, C) or (parts, 3, C)";
    if (moments.type() != torch.float32 && moments.type() != torch.float64)
      return "the moments are not f32 or f64";
    if (!lies_in_order(moments, Format::contiguous) ||
        moments.strides()[moments.rank() - 2] != channels())
      return "the moments are not contiguous";
    if (running_mean.defined() != running_variance.defined())
      return "a running mean without a variance, or a variance without a mean";
    for (const Tensor* running : {&running_mean, &running_variance}) {
      if (!running->defined()) continue;
      const bool fits = running->type() == moments.type() && running->on_device_of(moments) &&
                        running->rank() == 1 && running->size(0) == channels() &&
                        (running->strides()[0] == 1 || channels() == 1);
      if (!fits) return "running statistics differ from the moments in type, device or sizes";
    }
    return nullptr;
  }

  PlanRequest request() const {
    PlanRequest out = request_of(moments, Geometry{});
    out.pass = Pass::combine_moments;
    out.math = KILN_MATH_DEFAULT;
    out.rank = 2;
    out.a.sizes = {moments.rank() == 3 ? moments.size(0) : 1, channels()};
    out.has_running = running_mean.defined() ? 1 : 0;
    out.epsilon = std::bit_cast<std::uint64_t>(epsilon);
    return out;
  }
};

void composed_combination(const CombineCall& call, Value* stack) {
  stack[0] = share_tensor(call.moments);
  stack[1] = share_optional_tensor(call.running_mean);
  stack[2] = share_optional_tensor(call.running_variance);
  stack[3] = std::bit_cast<Value>(call.factor);
  stack[4] = std::bit_cast<Value>(call.epsilon);
  call_python("kiln_torch::native_combine_moments", stack, 2);
}

}  // namespace

Tensor moments_of(const Tensor& x) {
  if (const Refusal refusal = check_input(x); refusal != nullptr) {
    note_refusal(Pass::moments, x, Tensor(), {}, refusal);
    return composed_moments(x);
  }
  const Step step(request_of(Pass::moments, x));
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return composed_moments(x);
  Tensor copy;
  NormalizationOperands operands;
  operands.x = in_format(x, format_of(x), copy).data();
  Tensor out = Tensor::empty(x, type_of_channels(x), 2, {3, x.size(1)}, {x.size(1), 1});
  operands.moments = out.mutable_data();
  step.run(operands);
  return out;
}

void moments(Value* stack, std::uint64_t, std::uint64_t) {
  stack[0] = give_tensor(moments_of(take_tensor(stack[0])));
}

void combine_moments(Value* stack, std::uint64_t, std::uint64_t) {
  CombineCall call;
  call.moments = take_tensor(stack[0]);
  call.running_mean = take_optional_tensor(stack[1]);
  call.running_variance = take_optional_tensor(stack[2]);
  call.factor = std::bit_cast<double>(stack[3]);
  call.epsilon = std::bit_cast<double>(stack[4]);
  if (const Refusal refusal = call.check(); refusal != nullptr) {
    note_refusal(Pass::combine_moments, call.moments, Tensor(), {}, refusal);
    return composed_combination(call, stack);
  }
  const Step step(call.request());
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return composed_combination(call, stack);
  const std::int64_t channels = call.channels();
  Tensor mean = Tensor::empty(call.moments, 1, {channels}, {1});
  Tensor inverse_deviation = Tensor::empty(call.moments, 1, {channels}, {1});
  const Tensor whole = Tensor::empty(call.moments, 2, {3, channels}, {channels, 1});
  NormalizationOperands operands;
  operands.part_moments = call.moments.data();
  operands.factor = call.factor;
  if (call.running_mean.defined()) {
    operands.running_mean = call.running_mean.mutable_data();
    operands.running_variance = call.running_variance.mutable_data();
  }
  operands.mean = mean.mutable_data();
  operands.inverse_deviation = inverse_deviation.mutable_data();
  operands.moments = whole.mutable_data();
  step.run(operands);
  stack[0] = give_tensor(std::move(mean));
  stack[1] = give_tensor(std::move(inverse_deviation));
}

}  // namespace kiln::torch
