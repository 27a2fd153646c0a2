// aten::convolution_backward: up to three gradients, each by its own plan.
#include <memory>

#include "torch/operators.hpp"
#include "torch/serving.hpp"

namespace kiln::torch {
namespace {

struct BackwardCall {
  Tensor dy, x, w;
  std::optional<Integers> bias_sizes;
  Arguments arguments;
  std::array<bool, 3> mask{};
  // Filled by check():
  Geometry geometry{};
  Extents y_sizes{};
  Format format{};

  Refusal check() {
    Refusal refusal = check_flags();
    if (refusal == nullptr) refusal = check_call(x, w, arguments, geometry, y_sizes);
    if (refusal == nullptr) refusal = check_gradient(x, dy, y_sizes);
    if (refusal == nullptr) format = result_format(x, w);
    return refusal;
  }
};

// A gradient: the step that computes it, and the tensor that it goes to.
struct Gradient {
  Step step;
  Extents sizes, strides;
};

Gradient data_gradient(const BackwardCall& call, Policy policy) {
  const Geometry& g = call.geometry;
  PlanRequest request = request_of(call.x, g);
  request.pass = g.transposed ? Pass::forward : Pass::data_gradient;
  request.a = side_in_format(call.dy, call.format);
  request.b = side_in_format(call.w, call.format);
  Extents sizes{};
  std::ranges::copy(call.x.sizes(), sizes.begin());
  const Extents strides = dense_strides(call.format, call.x.rank(), sizes);
  request.c = {sizes, strides};
  request.alignment = alignment_of(
      {address_in_format(call.dy, call.format), address_in_format(call.w, call.format)});
  return {Step(request, policy), sizes, strides};
}

Gradient filter_gradient(const BackwardCall& call, Policy policy) {
  const Geometry& g = call.geometry;
  PlanRequest request = request_of(call.x, g);
  request.pass = Pass::filter_gradient;
  request.a = side_in_format(g.transposed ? call.dy : call.x, call.format);
  request.c = side_in_format(g.transposed ? call.x : call.dy, call.format);
  Extents sizes{};
  std::ranges::copy(call.w.sizes(), sizes.begin());
  const Extents strides = dense_strides(call.format, call.x.rank(), sizes);
  request.b = {sizes, strides};
  request.alignment = alignment_of(
      {address_in_format(call.dy, call.format), address_in_format(call.x, call.format)});
  return {Step(request, policy), sizes, strides};
}

Gradient bias_gradient(const BackwardCall& call, Policy policy) {
  PlanRequest request = request_of(call.x, {});
  request.pass = Pass::bias_gradient;
  request.math = KILN_MATH_DEFAULT;
  request.a = side_in_format(call.dy, call.format);
  request.c.sizes.fill(1);
  request.c.sizes[1] = call.y_sizes[1];
  request.c.strides = dense_strides(Format::contiguous, request.rank, request.c.sizes);
  request.alignment = alignment_of({address_in_format(call.dy, call.format)});
  return {Step(request, policy), {call.y_sizes[1]}, {1}};
}

// The copies of operands that lie otherwise, made when the first step wants them.
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
  explicit Serving(const BackwardCall& call) : call_(call), copies_(call) {}

  Gradients serve() {
    const Policy policy = backward_policy(layer_of(call_.x, call_.w, call_.geometry));
    std::array<bool, 3> native{};
    using Make = Gradient (*)(const BackwardCall&, Policy);
    constexpr Make make[] = {data_gradient, filter_gradient, bias_gradient};
    for (std::size_t i = 0; i < 3; ++i) {
      if (!call_.mask[i]) continue;
      const Gradient gradient = make[i](call_, policy);
      const Road road = gradient.step.road();
      gradient.step.count(road != Road::native);
      if (road == Road::native)
        native[i] = true;
      else if (road == Road::kiln)
        run(i, gradient);
      else
        measure(
            gradient.step.entry(), [&] { run(i, gradient); }, [&] { run_native(only(i)); });
    }
    if (native[0] || native[1] || native[2]) {
      Gradients rest = run_native(native);
      if (native[0]) out_.dx = std::move(rest.dx);
      if (native[1]) out_.dw = std::move(rest.dw);
      if (native[2]) out_.db = std::move(rest.db);
    }
    return std::move(out_);
  }

 private:
  static std::array<bool, 3> only(std::size_t i) { return {i == 0, i == 1, i == 2}; }

  Gradients run_native(const std::array<bool, 3>& mask) {
    return native_backward(call_.dy, call_.x, call_.w, call_.bias_sizes, call_.arguments, mask,
                           true);
  }

  void run(std::size_t i, const Gradient& gradient) {
    const bool transposed = call_.geometry.transposed;
    Tensor result =
        Tensor::empty(call_.x, i == 2 ? 1 : call_.x.rank(), gradient.sizes, gradient.strides);
    Operands operands;
    operands.a = i == 1 && !transposed ? copies_.x() : copies_.dy();
    if (i == 1) {
      operands.b = result.mutable_data();
      operands.c = const_cast<void*>(transposed ? copies_.x() : copies_.dy());
    } else {
      if (i == 0) operands.b = copies_.w();
      operands.c = result.mutable_data();
    }
    gradient.step.run(operands);
    (i == 0 ? out_.dx : i == 1 ? out_.dw : out_.db) = std::move(result);
  }

  const BackwardCall& call_;
  Copies copies_;
  Gradients out_;
};

}  // namespace

void convolution_backward(Value* stack, std::uint64_t, std::uint64_t) {
  BackwardCall call;
  call.dy = take_tensor(stack[0]);
  call.x = take_tensor(stack[1]);
  call.w = take_tensor(stack[2]);
  if (const std::unique_ptr<Value> sizes(reinterpret_cast<Value*>(stack[3])); sizes)
    call.bias_sizes = take_integers(*sizes);
  call.arguments = Arguments::take(stack + 4);
  call.mask = take_mask(stack[10]);
  const Refusal refusal = call.check();
  Gradients out;
  if (refusal == nullptr) {
    out = Serving(call).serve();
  } else {
    note_refusal(Pass::data_gradient, call.x, call.w, call.geometry, refusal);
    out =
        native_backward(call.dy, call.x, call.w, call.bias_sizes, call.arguments, call.mask, false);
  }
  stack[0] = give_tensor(std::move(out.dx));
  stack[1] = give_tensor(std::move(out.dw));
  stack[2] = give_tensor(std::move(out.db));
}

}  // namespace kiln::torch
