// aten::convolution_backward: up to three gradients, each computed by its own plan.
#include "torch/convolution/backward.hpp"

#include <algorithm>
#include <memory>

#include "torch/convolution/operators.hpp"
#include "torch/convolution/serving.hpp"

namespace kiln::torch {
namespace {

// A gradient: the step that computes it, and the tensor that it is written to.
struct Gradient {
  Step step;
  Extents sizes, strides;
};

Gradient data_gradient(const BackwardCall& call) {
  const Geometry& g = call.geometry;
  PlanRequest request = request_of(call.x, g);
  request.pass = g.transposed ? Pass::forward : Pass::data_gradient;
  if (g.transposed) request.end_at_output_padding(g);
  request.a = side_in_format(call.dy, call.format);
  request.b = side_in_format(call.w, call.format);
  Extents sizes{};
  std::ranges::copy(call.x.sizes(), sizes.begin());
  const Extents strides = dense_strides(call.format, call.x.rank(), sizes);
  request.c = {sizes, strides};
  request.alignment = alignment_of(
      {address_in_format(call.dy, call.format), address_in_format(call.w, call.format)});
  return {Step(request), sizes, strides};
}

Gradient filter_gradient(const BackwardCall& call) {
  const Geometry& g = call.geometry;
  PlanRequest request = request_of(call.x, g);
  request.pass = Pass::filter_gradient;
  if (g.transposed) request.end_at_output_padding(g);
  request.a = side_in_format(g.transposed ? call.dy : call.x, call.format);
  request.c = side_in_format(g.transposed ? call.x : call.dy, call.format);
  Extents sizes{};
  std::ranges::copy(call.w.sizes(), sizes.begin());
  const Extents strides = dense_strides(call.format, call.x.rank(), sizes);
  request.b = {sizes, strides};
  request.alignment = alignment_of(
      {address_in_format(call.dy, call.format), address_in_format(call.x, call.format)});
  return {Step(request), sizes, strides};
}

Gradient bias_gradient(const BackwardCall& call) {
  PlanRequest request = request_of(call.x, {});
  request.pass = Pass::bias_gradient;
  request.math = KILN_MATH_DEFAULT;
  request.a = side_in_format(call.dy, call.format);
  request.c.sizes.fill(1);
  request.c.sizes[1] = call.y_sizes[1];
  request.c.strides = dense_strides(Format::contiguous, request.rank, request.c.sizes);
  request.alignment = alignment_of({address_in_format(call.dy, call.format)});
  return {Step(request), {call.y_sizes[1]}, {1}};
}

// Copies of the operands whose layout differs from the result's, made when the first step needs
// them.
class Copies {
 public:
  explicit Copies(const BackwardCall& call) : call_(call) {}
  const void* dy() { return get(call_.dy, dy_); }
  const void* x() { return get(call_.x, x_); }
  const void* w() { return get(call_.w, w_); }

 private:
  const void* get(const Tensor& tensor, Tensor& copy) {
    return copy.defined() ? copy.data() : in_format(tensor, call_.format, copy).data();
  }
  const BackwardCall& call_;
  Tensor dy_, x_, w_;
};

class Serving {
 public:
  explicit Serving(BackwardCall& call) : call_(call) {
    using Make = Gradient (*)(const BackwardCall&);
    constexpr Make make[] = {data_gradient, filter_gradient, bias_gradient};
    for (std::size_t i = 0; i < 3; ++i)
      if (call.mask[i]) gradients_[i].emplace(make[i](call));
  }

  Gradients serve() {
    const Policy policy = backward_policy(layer_of(call_.x, call_.w, call_.geometry));
    Results native = 0;
    if (policy == Policy::measure && std::ranges::find(call_.mask, true) != call_.mask.end()) {
      native = run_cheapest(measured_call());
    } else {
      for (std::size_t i = 0; i < 3; ++i)
        if (gradients_[i] && !gradients_[i]->step.ready(policy)) native |= Results(1U << i);
      run(native);
    }
    for (std::size_t i = 0; i < 3; ++i)
      if (gradients_[i]) gradients_[i]->step.count((native >> i & 1) == 0);
    return std::move(out_);
  }

 private:
  MeasuredCall measured_call() {
    MeasuredCall out{
        {}, nullptr, {&call_.dy, &call_.x, &call_.w}, [this](Results native) { run(native); }};
    for (std::size_t i = 0; i < 3; ++i) {
      if (!gradients_[i]) continue;
      out.entries[i] = &gradients_[i]->step.entry();
      out.handle = gradients_[i]->step.handle();
    }
    return out;
  }

  void run(Results native) {
    out_ = Gradients();  // drops the results of the way that was timed before
    Copies copies(call_);
    for (std::size_t i = 0; i < 3; ++i)
      if (gradients_[i] && (native >> i & 1) == 0) by_kiln(i, *gradients_[i], copies);
    if (native == 0) return;
    const std::array<bool, 3> mask{(native & 1) != 0, (native & 2) != 0, (native & 4) != 0};
    Gradients rest =
        native_backward(call_.dy, call_.x, call_.w, call_.bias_sizes, call_.arguments, mask, true);
    if (mask[0]) out_.dx = std::move(rest.dx);
    if (mask[1]) out_.dw = std::move(rest.dw);
    if (mask[2]) out_.db = std::move(rest.db);
  }

  void by_kiln(std::size_t i, const Gradient& gradient, Copies& copies) {
    const bool transposed = call_.geometry.transposed;
    Tensor result =
        Tensor::empty(call_.x, i == 2 ? 1 : call_.x.rank(), gradient.sizes, gradient.strides);
    Operands operands;
    operands.a = i == 1 && !transposed ? copies.x() : copies.dy();
    if (i == 1) {
      operands.b = result.mutable_data();
      operands.c = const_cast<void*>(transposed ? copies.x() : copies.dy());
    } else {
      if (i == 0) operands.b = copies.w();
      operands.c = result.mutable_data();
    }
    gradient.step.run(operands);
    (i == 0 ? out_.dx : i == 1 ? out_.dw : out_.db) = std::move(result);
  }

  BackwardCall& call_;
  std::array<std::optional<Gradient>, 3> gradients_;
  Gradients out_;
};

// Takes the arguments from the stack and leaves the gradients there.
void compute(Value* stack, bool only_if_enabled) {
  BackwardCall call = BackwardCall::take(stack);
  call.arguments.by_side = !only_if_enabled;
  const Refusal refusal = call.check();
  Gradients out = !only_if_enabled || is_enabled(call.x)
                      ? gradients_of(call, refusal)
                      : native_backward(call.dy, call.x, call.w, call.bias_sizes, call.arguments,
                                        call.mask, refusal == nullptr);
  stack[0] = give_tensor(std::move(out.dx));
  stack[1] = give_tensor(std::move(out.dw));
  stack[2] = give_tensor(std::move(out.db));
}

}  // namespace

BackwardCall BackwardCall::take(const Value* stack) {
  BackwardCall call;
  call.dy = take_tensor(stack[0]);
  call.x = take_tensor(stack[1]);
  call.w = take_tensor(stack[2]);
  if (const std::unique_ptr<Value> sizes(reinterpret_cast<Value*>(stack[3])); sizes)
    call.bias_sizes = take_integers(*sizes);
  call.arguments = Arguments::take(stack + 4);
  call.mask = take_mask(stack[10]);
  return call;
}

Refusal BackwardCall::check() {
  Refusal refusal = check_flags();
  if (refusal == nullptr) refusal = check_call(x, w, arguments, geometry, y_sizes);
  if (refusal == nullptr) refusal = check_like(x, dy, y_sizes);
  if (refusal == nullptr) format = format_of(x, w, arguments);
  return refusal;
}

Gradients gradients_of(BackwardCall& call, Refusal refusal) {
  if (refusal == nullptr) return Serving(call).serve();
  note_refusal(Pass::data_gradient, call.x, call.w, call.geometry, refusal);
  return native_backward(call.dy, call.x, call.w, call.bias_sizes, call.arguments, call.mask,
                         false);
}

void convolution_backward(Value* stack, std::uint64_t, std::uint64_t) { compute(stack, true); }

void fused_convolution_backward(Value* stack, std::uint64_t, std::uint64_t) {
  compute(stack, false);
}

}  // namespace kiln::torch
