// kiln::normalize and its gradient.
#include <bit>

#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"
#include "torch/normalization/operands.hpp"
#include "torch/normalization/operators.hpp"

namespace kiln::torch {
namespace {

// input, mean, ..., own: nine Values.
NormalizationCall take_call(const Value* from_input) {
  NormalizationCall call = NormalizationCall::take(from_input);
  call.own = (from_input[8] & 0xff) != 0;
  return call;
}

void share_call(const NormalizationCall& call, Value* from_input) {
  from_input[0] = share_tensor(call.x);
  from_input[1] = share_tensor(call.mean);
  from_input[2] = share_tensor(call.inverse_deviation);
  from_input[3] = share_optional_tensor(call.weight);
  from_input[4] = share_optional_tensor(call.bias);
  from_input[5] = share_optional_tensor(call.residual);
  from_input[6] = static_cast<Value>(call.activation);
  from_input[7] = std::bit_cast<Value>(call.coefficient);
  from_input[8] = call.own ? 1 : 0;
}

// The operands that both passes have.
NormalizedOperands operands_of(const NormalizationCall& call) {
  NormalizedOperands out(call.x, call.residual, call.weight, call.bias);
  out.list.mean = call.mean.data();
  out.list.inverse_deviation = call.inverse_deviation.data();
  return out;
}

void normalize_composed(const NormalizationCall& call, Value* stack) {
  share_call(call, stack);
  call_python("kiln_torch::native_normalize", stack, 1);
}

struct GradientCall {
  Tensor dy;
  NormalizationCall of;
  bool with_residual = false;

  Refusal check() const {
    const Refusal refusal = of.check();
    return refusal != nullptr ? refusal : check_gradient(of.x, dy, sizes_of(of.x));
  }

  PlanRequest request() const {
    PlanRequest out = request_of(Pass::normalize_gradient, of);
    out.b = side_in_format(dy, format_of(of.x));
    out.is_frozen = of.own ? 0 : 1;
    out.has_dresidual = with_residual ? 1 : 0;
    return out;
  }
};

void gradient_composed(const GradientCall& call, Value* stack) {
  stack[0] = share_tensor(call.dy);
  share_call(call.of, stack + 1);
  stack[10] = call.with_residual ? 1 : 0;
  call_python("kiln_torch::native_normalize_backward", stack, 4);
}

}  // namespace

void normalize(Value* stack, std::uint64_t, std::uint64_t) {
  const NormalizationCall call = take_call(stack);
  if (const Refusal refusal = call.check(); refusal != nullptr) {
    note_refusal(Pass::normalize, call.x, Tensor(), {}, refusal);
    return normalize_composed(call, stack);
  }
  const Step step(request_of(Pass::normalize, call));
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return normalize_composed(call, stack);
  NormalizedOperands operand = operands_of(call);
  Tensor y = new_like(call.x);
  operand.list.y = y.mutable_data();
  step.run(operand.list);
  stack[0] = give_tensor(std::move(y));
}

void normalize_backward(Value* stack, std::uint64_t, std::uint64_t) {
  GradientCall call;
  call.dy = take_tensor(stack[0]);
  call.of = take_call(stack + 1);
  call.with_residual = (stack[10] & 0xff) != 0;
  if (const Refusal refusal = call.check(); refusal != nullptr) {
    note_refusal(Pass::normalize_gradient, call.of.x, Tensor(), {}, refusal);
    return gradient_composed(call, stack);
  }
  const Step step(call.request());
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return gradient_composed(call, stack);
  const Tensor& x = call.of.x;
  NormalizedOperands operand = operands_of(call.of);
  Tensor dy_copy;
  operand.list.dy = in_format(call.dy, format_of(x), dy_copy).data();
  const Extents channels{x.size(1)}, one{1};
  Tensor dx = new_like(x);
  Tensor dresidual = call.with_residual ? new_like(x) : Tensor::empty(x, 1, {0}, one);
  Tensor dweight = Tensor::empty(x, type_of_channels(x), 1, channels, one);
  Tensor dbias = Tensor::empty(x, type_of_channels(x), 1, channels, one);
  operand.list.y = dx.mutable_data();
  if (call.with_residual) operand.list.dresidual = dresidual.mutable_data();
  operand.list.dscale = dweight.mutable_data();
  operand.list.dbias = dbias.mutable_data();
  step.run(operand.list);
  stack[0] = give_tensor(std::move(dx));
  stack[1] = give_tensor(std::move(dresidual));
  stack[2] = give_tensor(std::move(dweight));
  stack[3] = give_tensor(std::move(dbias));
}

}  // namespace kiln::torch
