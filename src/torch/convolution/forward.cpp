// Forward passes: aten::convolution, kiln::convolution_bias_activation, convolution_into and
// convolution_moments.
#include <algorithm>
#include <bit>

#include "torch/convolution/operators.hpp"
#include "torch/convolution/serving.hpp"
#include "torch/normalization/checks.hpp"
#include "torch/normalization/operators.hpp"

namespace kiln::torch {
namespace {

struct ForwardCall {
  Tensor x, w, bias, residual;
  Tensor out;  // where the result goes; undefined: into a new tensor
  Arguments arguments;
  std::int32_t activation = KILN_ACTIVATION_IDENTITY;
  double coefficient = 0;
  bool with_moments = false;
  // Set by check():
  Geometry geometry{};
  Extents y_sizes{};
  Format format{};

  Refusal check() {
    Refusal refusal = check_flags();
    if (refusal == nullptr) refusal = check_call(x, w, arguments, geometry, y_sizes);
    if (refusal == nullptr) refusal = check_bias(x, bias, y_sizes[1]);
    if (refusal == nullptr && residual.defined()) refusal = check_like(x, residual, y_sizes);
    if (refusal == nullptr && out.defined()) refusal = check_like(x, out, y_sizes);
    if (refusal == nullptr) format = format_of(x, w, arguments);
    return refusal;
  }
};

struct Result {
  Tensor y, moments;  // y unless it went into the call's `out`; moments where they are wanted
};

// The request of the convolution and what its kernel does to the result.
PlanRequest main_request(const ForwardCall& call, const Extents& y_strides) {
  const auto& [x, w, bias, residual, out, arguments, activation, coefficient, with_moments,
               geometry, y_sizes, format] = call;
  PlanRequest request = request_of(x, geometry);
  request.pass = geometry.transposed ? Pass::transposed : Pass::forward;
  request.a = side_in_format(x, format);
  request.b = side_in_format(w, format);
  request.c = {y_sizes, y_strides};
  request.alignment = alignment_of({address_in_format(x, format), address_in_format(w, format),
                                    out.defined() ? out.data() : nullptr});
  request.has_moments = with_moments ? 1 : 0;
  request.activation = activation;
  request.coefficient = std::bit_cast<std::uint64_t>(coefficient);
  if (bias.defined()) {
    request.has_bias = 1;
    request.bias_stride = bias.strides()[0];
    request.alignment = std::min(request.alignment, alignment_of({bias.data()}));
  }
  if (residual.defined()) {
    request.has_residual = 1;
    request.residual_strides = side_in_format(residual, format).strides;
    request.alignment =
        std::min(request.alignment, alignment_of({address_in_format(residual, format)}));
  }
  return request;
}

// Computes y by the convolution's plan.
Result by_kiln(const ForwardCall& call, const Step& main, const Extents& y_strides) {
  Tensor x_copy, w_copy, residual_copy;
  Operands operands;
  operands.a = in_format(call.x, call.format, x_copy).data();
  operands.b = in_format(call.w, call.format, w_copy).data();
  if (call.residual.defined())
    operands.residual = in_format(call.residual, call.format, residual_copy).data();
  if (call.bias.defined()) operands.bias = call.bias.data();
  Tensor y;
  if (!call.out.defined()) y = Tensor::empty(call.x, call.x.rank(), call.y_sizes, y_strides);
  operands.c = (y.defined() ? y : call.out).mutable_data();
  Tensor moments;
  if (call.with_moments) {
    const std::int64_t channels = call.y_sizes[1];
    moments = Tensor::empty(y, type_of_channels(y), 2, {3, channels}, {channels, 1});
    operands.moments = moments.mutable_data();
  }
  main.run(operands);
  return {std::move(y), std::move(moments)};
}

// Computes the result by Kiln or by `native`, as the policy decides.
Result serve(ForwardCall& call, const std::function<Result()>& native) {
  const Policy policy = forward_policy(layer_of(call.x, call.w, call.geometry));
  Extents y_strides = dense_strides(call.format, call.x.rank(), call.y_sizes);
  if (call.out.defined()) std::ranges::copy(call.out.strides(), y_strides.begin());
  const Step main(main_request(call, y_strides));
  Result result;
  const auto run = [&](Results by_pytorch) {
    result = Result();  // drops the result of the way that was timed before
    result = by_pytorch == 0 ? by_kiln(call, main, y_strides) : native();
  };
  Results by_pytorch = 0;
  if (policy == Policy::measure) {
    by_pytorch =
        run_cheapest({{&main.entry()}, main.handle(), {&call.x, &call.w, &call.residual}, run});
  } else {
    by_pytorch = Results(main.ready(policy) ? 0 : 1);
    run(by_pytorch);
  }
  main.count(by_pytorch == 0);
  return result;
}

}  // namespace

void convolution(Value* stack, std::uint64_t, std::uint64_t) {
  ForwardCall call;
  call.x = take_tensor(stack[0]);
  call.w = take_tensor(stack[1]);
  call.bias = take_optional_tensor(stack[2]);
  call.arguments = Arguments::take(stack + 3);
  const Refusal refusal = call.check();
  const auto native = [&] {
    return native_forward(call.x, call.w, call.bias, call.arguments, refusal == nullptr);
  };
  if (!is_enabled(call.x)) {
    stack[0] = give_tensor(native());
    return;
  }
  if (refusal == nullptr) {
    stack[0] = give_tensor(serve(call, [&] { return Result{native(), Tensor()}; }).y);
    return;
  }
  note_refusal(Pass::forward, call.x, call.w, call.geometry, refusal);
  stack[0] = give_tensor(native());
}

void convolution_moments(Value* stack, std::uint64_t, std::uint64_t) {
  ForwardCall call;
  call.x = take_tensor(stack[0]);
  call.w = take_tensor(stack[1]);
  call.bias = take_optional_tensor(stack[2]);
  call.arguments = Arguments::take(stack + 3);
  call.with_moments = true;
  const Refusal refusal = call.check();
  const auto native = [&] {
    Tensor y = native_forward(call.x, call.w, call.bias, call.arguments, refusal == nullptr);
    Tensor moments = moments_of(y);
    return Result{std::move(y), std::move(moments)};
  };
  if (refusal != nullptr) note_refusal(Pass::forward, call.x, call.w, call.geometry, refusal);
  Result result = refusal == nullptr ? serve(call, native) : native();
  stack[0] = give_tensor(std::move(result.y));
  stack[1] = give_tensor(std::move(result.moments));
}

namespace {

// The result of a call with the arguments of convolution_bias_activation() on the stack; none if
// it goes into `out`.
Tensor fused(Value* stack, Tensor out) {
  ForwardCall call;
  call.x = take_tensor(stack[0]);
  call.w = take_tensor(stack[1]);
  call.bias = take_optional_tensor(stack[2]);
  call.residual = take_optional_tensor(stack[3]);
  call.out = std::move(out);
  call.arguments = Arguments::take(stack + 4);
  call.arguments.by_side = true;
  call.activation = static_cast<std::int32_t>(stack[10]);
  call.coefficient = std::bit_cast<double>(stack[11]);
  const Refusal refusal = call.check();
  const auto native = [&, activation = stack[10], coefficient = stack[11]] {
    Result result;
    result.y = native_fused(call.x, call.w, call.bias, call.residual, call.arguments, activation,
                            coefficient);
    if (!call.out.defined()) return result;
    check(libtorch().aoti_torch_copy_(call.out.handle(), result.y.handle(), 0), "aoti_torch_copy_");
    return Result();
  };
  if (refusal == nullptr) return serve(call, native).y;
  note_refusal(Pass::forward, call.x, call.w, call.geometry, refusal);
  return native().y;
}

}  // namespace

void convolution_bias_activation(Value* stack, std::uint64_t, std::uint64_t) {
  stack[0] = give_tensor(fused(stack, Tensor()));
}

void convolution_into(Value* stack, std::uint64_t, std::uint64_t) {
  Tensor out = take_tensor(stack[0]);
  fused(stack + 1, std::move(out));
}

}  // namespace kiln::torch
