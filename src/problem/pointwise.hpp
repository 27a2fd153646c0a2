// The canonical pointwise problem: every output element is a function of the elements at the same
// position in up to two inputs. Activations, transforms, additions with broadcasting, binary
// operations, setting and scaling are pointwise problems.
#pragma once

#include <string>
#include <vector>

#include "problem/activation.hpp"
#include "problem/tensor/operand.hpp"

namespace kiln {

enum class PointwiseOp {
  fill,                 // y = alpha + beta * y           (set: beta 0; scale: alpha 0)
  copy,                 // y = alpha * x + beta * y       (transform; add, which broadcasts x)
  activation,           // y = alpha * f(x) + beta * y
  activation_backward,  // dx = alpha * f'(v) * dy + beta * dx; v is x or y
  add,                  // c = alpha * a + alpha2 * b + beta * c
  mul,                  // c = (alpha * a) * (alpha2 * b) + beta * c
  min,                  // c = min(alpha * a, alpha2 * b) + beta * c; NaN if either is
  max,                  // c = max(alpha * a, alpha2 * b) + beta * c; NaN if either is
  sub,                  // c = alpha * a - alpha2 * b + beta * c
  div,                  // c = (alpha * a) / (alpha2 * b) + beta * c
  eq,                   // c = (alpha * a == alpha2 * b ? 1 : 0) + beta * c; false for NaN
  ne,                   // the same with !=, true for NaN
  lt,                   // the same with <, false for NaN
  le,                   // the same with <=, false for NaN
  gt,                   // the same with >, false for NaN
  ge                    // the same with >=, false for NaN
};

// Operands may have different types only for copy. All arithmetic is in the compute type: f64 if
// any operand is f64, else f32.
struct PointwiseProblem {
  PointwiseOp op = PointwiseOp::copy;
  Activation activation;
  int rank = 2;  // dimensions of space, after folding: -1 and 0 for tensors {N} and {N, C}
  Dims dims{};   // of the output: {N, C, depth, height, width}; N may be 0
  // The inputs in order, then the output, whose elements have different addresses. An input's
  // stride is 0 along a dimension in which it is broadcast.
  struct View {
    DataType type = KILN_DATA_FLOAT;
    Dims strides{};
    friend bool operator==(const View&, const View&) = default;
  };
  std::vector<View> views;

  DataType compute_type() const;
  std::size_t inputs() const { return views.size() - 1; }
  const View& output() const { return views.back(); }

  friend bool operator==(const PointwiseProblem&, const PointwiseProblem&) = default;
};

// All throw BAD_PARAM whose message has the C API's names of the tensors ("xDesc", "aDesc").
PointwiseProblem make_fill(const Tensor& y);
PointwiseProblem make_transform(const Tensor& x, const Tensor& y);  // same sizes
PointwiseProblem make_add(const Tensor& x, const Tensor& y);        // x's sizes equal y's, or 1
PointwiseProblem make_binary(kilnOpTensorOp_t op, const Tensor& a, const Tensor& b,
                             const Tensor& c);  // sizes of a and b equal c's, or 1
PointwiseProblem make_activation_forward(const Activation& activation, const Tensor& x,
                                         const Tensor& y);
// saved: y if gradient_from_output(), else x; saved_name: the caller's name for it.
PointwiseProblem make_activation_backward(const Activation& activation, const Tensor& saved,
                                          const char* saved_name, const Tensor& dy,
                                          const Tensor& dx);

// fill: y. copy, activation: x, y. activation_backward: y or x, dy, dx. Binary operations: a, b, c.
std::vector<Operand> operands_of(const PointwiseProblem& problem);

// The arguments of `kiln act` (activations) or `kiln tensor` (the others):
// "--op add --dt f16 16x64x28x28:1x64x1x1:16x64x28x28".
std::string to_line(const PointwiseProblem& problem);

}  // namespace kiln
