// kiln::normalize_rows and its gradient: normalization by the statistics of groups or of pixels.
#include <bit>

#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"
#include "torch/normalization/operands.hpp"
#include "torch/normalization/operators.hpp"

namespace kiln::torch {
namespace {

struct RowsCall {
  Tensor x, weight, bias, residual;
  std::int64_t groups = 0;  // 0: of pixels
  bool centered = true;
  double epsilon = 0, coefficient = 0;
  std::int32_t activation = KILN_ACTIVATION_IDENTITY;

  Refusal check() const {
    Refusal refusal = check_input(x);
    for (const Tensor* numbers : {&weight, &bias})
      if (refusal == nullptr && numbers->defined()) refusal = check_channels(x, *numbers);
    if (refusal == nullptr && bias.defined() && !weight.defined())
      refusal = "a bias without a weight";
    if (refusal == nullptr && (groups < 0 || (groups > 0 && x.size(1) % groups != 0)))
      refusal = "the groups do not divide the channels";
    if (refusal == nullptr && residual.defined())
      refusal = check_gradient(x, residual, sizes_of(x));
    return refusal;
  }

  // Means of an image.
  std::int64_t statistics() const {
    if (groups > 0) return groups;
    std::int64_t space = 1;
    for (int i = 2; i < x.rank(); ++i) space *= x.size(i);
    return space;
  }
  Tensor new_statistics() const {
    const std::int64_t of_image = statistics();
    return Tensor::empty(x, type_of_channels(x), 2, {x.size(0), of_image}, {of_image, 1});
  }
  Tensor none() const { return Tensor::empty(x, type_of_channels(x), 1, {0}, {1}); }

  PlanRequest request(Pass pass) const {
    PlanRequest out = request_of(pass, x);
    const Format format = format_of(x);
    out.c = {out.a.sizes, dense_strides(format, x.rank(), out.a.sizes)};
    out.activation = activation;
    out.coefficient = std::bit_cast<std::uint64_t>(coefficient);
    out.epsilon = std::bit_cast<std::uint64_t>(epsilon);
    out.has_bias = !weight.defined() ? 0 : bias.defined() ? 1 : 2;
    out.statistics = groups > 0 ? KILN_NORMALIZATION_GROUP : KILN_NORMALIZATION_PIXEL;
    out.groups = groups;
    out.is_uncentered = centered ? 0 : 1;
    if (residual.defined()) {
      out.has_residual = 1;
      out.residual_strides = side_in_format(residual, format).strides;
    }
    return out;
  }
};

// groups, centered, weight, bias, residual: five Values.
void take_options(RowsCall& call, const Value* from_groups) {
  call.groups = static_cast<std::int64_t>(from_groups[0]);
  call.centered = (from_groups[1] & 0xff) != 0;
  call.weight = take_optional_tensor(from_groups[2]);
  call.bias = take_optional_tensor(from_groups[3]);
  call.residual = take_optional_tensor(from_groups[4]);
}
void share_options(const RowsCall& call, Value* from_groups) {
  from_groups[0] = static_cast<Value>(call.groups);
  from_groups[1] = call.centered ? 1 : 0;
  from_groups[2] = share_optional_tensor(call.weight);
  from_groups[3] = share_optional_tensor(call.bias);
  from_groups[4] = share_optional_tensor(call.residual);
}

void rows_composed(const RowsCall& call, Value* stack) {
  stack[0] = share_tensor(call.x);
  share_options(call, stack + 1);
  stack[6] = std::bit_cast<Value>(call.epsilon);
  stack[7] = static_cast<Value>(call.activation);
  stack[8] = std::bit_cast<Value>(call.coefficient);
  call_python("kiln_torch::native_normalize_rows", stack, 3);
}

struct RowsGradientCall {
  Tensor dy, mean, inverse_deviation;
  RowsCall of;
  bool with_residual = false;

  Refusal check() const {
    Refusal refusal = of.check();
    if (refusal == nullptr) refusal = check_gradient(of.x, dy, sizes_of(of.x));
    const std::int64_t count = of.x.elements() == 0 ? 0 : of.x.size(0) * of.statistics();
    if (refusal == nullptr && !fits(inverse_deviation, count))
      refusal = "the statistics are not what the forward pass gave";
    if (refusal == nullptr && of.centered && !fits(mean, count))
      refusal = "the statistics are not what the forward pass gave";
    return refusal;
  }

  PlanRequest request() const {
    PlanRequest out = of.request(Pass::normalize_rows_gradient);
    out.b = side_in_format(dy, format_of(of.x));
    out.has_dresidual = with_residual ? 1 : 0;
    return out;
  }

 private:
  bool fits(const Tensor& statistics, std::int64_t count) const {
    return statistics.type() == type_of_channels(of.x) && statistics.on_device_of(of.x) &&
           statistics.elements() == count && lies_in_order(statistics, Format::contiguous);
  }
};

void rows_gradient_composed(const RowsGradientCall& call, Value* stack) {
  stack[0] = share_tensor(call.dy);
  stack[1] = share_tensor(call.of.x);
  stack[2] = share_tensor(call.mean);
  stack[3] = share_tensor(call.inverse_deviation);
  share_options(call.of, stack + 4);
  stack[9] = static_cast<Value>(call.of.activation);
  stack[10] = std::bit_cast<Value>(call.of.coefficient);
  stack[11] = call.with_residual ? 1 : 0;
  call_python("kiln_torch::native_normalize_rows_backward", stack, 4);
}

}  // namespace

void normalize_rows(Value* stack, std::uint64_t, std::uint64_t) {
  RowsCall call;
  call.x = take_tensor(stack[0]);
  take_options(call, stack + 1);
  call.epsilon = std::bit_cast<double>(stack[6]);
  call.activation = static_cast<std::int32_t>(stack[7]);
  call.coefficient = std::bit_cast<double>(stack[8]);
  if (const Refusal refusal = call.check(); refusal != nullptr) {
    note_refusal(Pass::normalize_rows, call.x, Tensor(), {}, refusal);
    return rows_composed(call, stack);
  }
  const Step step(call.request(Pass::normalize_rows));
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return rows_composed(call, stack);
  NormalizedOperands operands(call.x, call.residual, call.weight, call.bias);
  Tensor y = new_like(call.x), inverse_deviation = call.new_statistics();
  Tensor mean = call.centered ? call.new_statistics() : call.none();
  operands.list.y = y.mutable_data();
  if (call.centered) operands.list.mean = mean.mutable_data();
  operands.list.inverse_deviation = inverse_deviation.mutable_data();
  step.run(operands.list);
  stack[0] = give_tensor(std::move(y));
  stack[1] = give_tensor(std::move(mean));
  stack[2] = give_tensor(std::move(inverse_deviation));
}

void normalize_rows_backward(Value* stack, std::uint64_t, std::uint64_t) {
  RowsGradientCall call;
  call.dy = take_tensor(stack[0]);
  call.of.x = take_tensor(stack[1]);
  call.mean = take_tensor(stack[2]);
  call.inverse_deviation = take_tensor(stack[3]);
  take_options(call.of, stack + 4);
  call.of.activation = static_cast<std::int32_t>(stack[9]);
  call.of.coefficient = std::bit_cast<double>(stack[10]);
  call.with_residual = (stack[11] & 0xff) != 0;
  const Tensor& x = call.of.x;
  if (const Refusal refusal = call.check(); refusal != nullptr) {
    note_refusal(Pass::normalize_rows_gradient, x, Tensor(), {}, refusal);
    return rows_gradient_composed(call, stack);
  }
  const Step step(call.request());
  const bool ready = step.ready(Policy::wait);
  step.count(ready);
  if (!ready) return rows_gradient_composed(call, stack);
  NormalizedOperands operands(call.of.x, call.of.residual, call.of.weight, call.of.bias);
  Tensor dy_copy;
  operands.list.dy = in_format(call.dy, format_of(x), dy_copy).data();
  if (call.of.centered) operands.list.mean = call.mean.data();
  operands.list.inverse_deviation = call.inverse_deviation.data();
  const auto of_channels = [&](const Tensor& given) {
    if (!given.defined()) return call.of.none();
    return Tensor::empty(x, type_of_channels(x), 1, {x.size(1)}, {1});
  };
  Tensor dx = new_like(x);
  Tensor dresidual = call.with_residual ? new_like(x) : Tensor::empty(x, 1, {0}, {1});
  Tensor dweight = of_channels(call.of.weight), dbias = of_channels(call.of.bias);
  operands.list.y = dx.mutable_data();
  if (call.with_residual) operands.list.dresidual = dresidual.mutable_data();
  if (call.of.weight.defined()) operands.list.dscale = dweight.mutable_data();
  if (call.of.bias.defined()) operands.list.dbias = dbias.mutable_data();
  step.run(operands.list);
  stack[0] = give_tensor(std::move(dx));
  stack[1] = give_tensor(std::move(dresidual));
  stack[2] = give_tensor(std::move(dweight));
  stack[3] = give_tensor(std::move(dbias));
}

}  // namespace kiln::torch
