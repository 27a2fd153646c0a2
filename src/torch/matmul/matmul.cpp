#include <algorithm>
#include <bit>

#include "torch/convolution/serving.hpp"
#include "torch/matmul/operators.hpp"

namespace kiln::torch {
namespace {

struct Call {
  Tensor a, b, bias, residual;
  std::int32_t activation = KILN_ACTIVATION_IDENTITY;
  double coefficient = 0;
  bool tf32 = false;
  Extents sizes{};  // of the result; set by check()

  Refusal check() {
    const int rank = a.rank(), last = rank - 1;
    if (rank != 2 && rank != 3) return "not matrices, nor batches of them";
    if (!is_served(a.type())) return "the type is not f32, f64, f16 or bf16";
    if (b.rank() != rank || b.size(last - 1) != a.size(last) ||
        (rank == 3 && b.size(0) != a.size(0)))
      return "the sizes of the matrices do not fit together";
    for (const Tensor* other : {&b, &bias, &residual}) {
      if (!other->defined()) continue;
      if (other->type() != a.type()) return "tensors differ in type";
      if (!other->on_device_of(a)) return "tensors are on different devices";
    }
    std::copy_n(a.sizes().begin(), rank, sizes.begin());
    sizes[last] = b.size(last);
    if (a.elements() == 0 || b.elements() == 0) return "an empty tensor";
    if (bias.defined() && (bias.rank() != 1 || bias.size(0) != sizes[last]))
      return "the bias has not one element a column";
    if (residual.defined() &&
        !std::ranges::equal(residual.sizes(), std::span(sizes).first(std::size_t(rank))))
      return "the residual has not the sizes of the result";
    return nullptr;
  }
};

PlanRequest request_of(const Call& call, const Extents& strides) {
  PlanRequest request = request_of(call.a, Geometry{});
  request.pass = Pass::product;
  const bool tf32 =
      call.tf32 && request.type == KILN_DATA_FLOAT && request.device_kind == KILN_DEVICE_CUDA;
  request.math = tf32 ? KILN_MATH_TF32 : KILN_MATH_DEFAULT;
  request.set(request.a, call.a);
  request.set(request.b, call.b);
  request.c = {call.sizes, strides};
  request.alignment = alignment_of({call.a.data(), call.b.data()});
  request.activation = call.activation;
  request.coefficient = std::bit_cast<std::uint64_t>(call.coefficient);
  if (call.bias.defined()) {
    request.has_bias = 1;
    request.bias_stride = call.bias.strides()[0];
    request.alignment = std::min(request.alignment, alignment_of({call.bias.data()}));
  }
  if (call.residual.defined()) {
    request.has_residual = 1;
    PlanRequest::Side side{};
    request.set(side, call.residual);
    request.residual_strides = side.strides;
    request.alignment = std::min(request.alignment, alignment_of({call.residual.data()}));
  }
  return request;
}

Tensor by_kiln(const Call& call, const Step& step, const Extents& strides) {
  Tensor out = Tensor::empty(call.a, call.a.rank(), call.sizes, strides);
  Operands operands;
  operands.a = call.a.data();
  operands.b = call.b.data();
  if (call.bias.defined()) operands.bias = call.bias.data();
  if (call.residual.defined()) operands.residual = call.residual.data();
  operands.c = out.mutable_data();
  step.run(operands);
  return out;
}

Tensor native(const Call& call) {
  Value stack[7];
  stack[0] = share_tensor(call.a);
  stack[1] = share_tensor(call.b);
  stack[2] = share_optional_tensor(call.bias);
  stack[3] = share_optional_tensor(call.residual);
  stack[4] = static_cast<Value>(call.activation);
  stack[5] = std::bit_cast<Value>(call.coefficient);
  stack[6] = call.tf32 ? 1 : 0;
  call_python("kiln_torch::native_matmul_bias_activation", stack, 1);
  return take_tensor(stack[0]);
}

// Computes the result by Kiln or by PyTorch, as the policy decides.
Tensor serve(Call& call) {
  const Policy policy = forward_policy(layer_of(call.a, call.b, {}));
  const Extents strides = dense_strides(Format::contiguous, call.a.rank(), call.sizes);
  const Step step(request_of(call, strides));
  Tensor out;
  const auto run = [&](Results by_pytorch) {
    out = Tensor();  // drops the result of the way that was timed before
    out = by_pytorch == 0 ? by_kiln(call, step, strides) : native(call);
  };
  Results by_pytorch = 0;
  if (policy == Policy::measure) {
    by_pytorch =
        run_cheapest({{&step.entry()}, step.handle(), {&call.a, &call.b, &call.residual}, run});
  } else {
    by_pytorch = Results(step.ready(policy) ? 0 : 1);
    run(by_pytorch);
  }
  step.count(by_pytorch == 0);
  return out;
}

}  // namespace

void matmul_bias_activation(Value* stack, std::uint64_t, std::uint64_t) {
  Call call;
  call.a = take_tensor(stack[0]);
  call.b = take_tensor(stack[1]);
  call.bias = take_optional_tensor(stack[2]);
  call.residual = take_optional_tensor(stack[3]);
  call.activation = static_cast<std::int32_t>(stack[4]);
  call.coefficient = std::bit_cast<double>(stack[5]);
  call.tf32 = (stack[6] & 0xff) != 0;
  const Refusal refusal = call.check();
  if (refusal == nullptr) {
    stack[0] = give_tensor(serve(call));
    return;
  }
  note_refusal(Pass::product, call.a, call.b, {}, refusal);
  stack[0] = give_tensor(native(call));
}

}  // namespace kiln::torch
