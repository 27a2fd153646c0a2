#include "problem/pointwise.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "problem/line/shape_line.hpp"
#include "problem/tensor/checks.hpp"
#include "problem/tensor/fold.hpp"

namespace kiln {
namespace {

// The view of a tensor at the output's positions.
PointwiseProblem::View view_of(const Tensor& tensor, const Dims& out) {
  const Operand operand = make_operand("", tensor);
  PointwiseProblem::View view{tensor.type, operand.strides};
  for (int i = 0; i < operand_rank; ++i)
    if (operand.dims[i] == 1 && out[i] != 1) view.strides[i] = 0;
  return view;
}

PointwiseProblem make(PointwiseOp op, std::vector<Tensor> tensors) {
  tensors = folded(tensors, tensors.size() - 1, Fold::any);
  const Tensor& out = tensors.back();
  PointwiseProblem problem;
  problem.op = op;
  problem.rank = out.rank - 2;
  problem.dims = make_operand("", out).dims;
  for (const Tensor& tensor : tensors) problem.views.push_back(view_of(tensor, problem.dims));
  return problem;
}

void check_input(const Tensor& tensor, const char* name, const Tensor& out, const char* out_name) {
  check_given(tensor, name);
  check_same_type(tensor, name, out, out_name);
  check_same_sizes(tensor, name, out, out_name);
}

void check_output(const Tensor& tensor, const char* name) {
  check_given(tensor, name);
  check_writable(tensor, name);
}

PointwiseOp op_of(kilnOpTensorOp_t op) {
  switch (op) {
    case KILN_OP_TENSOR_ADD: return PointwiseOp::add;
    case KILN_OP_TENSOR_MUL: return PointwiseOp::mul;
    case KILN_OP_TENSOR_MIN: return PointwiseOp::min;
    case KILN_OP_TENSOR_MAX: return PointwiseOp::max;
    case KILN_OP_TENSOR_SUB: return PointwiseOp::sub;
    case KILN_OP_TENSOR_DIV: return PointwiseOp::div;
    case KILN_OP_TENSOR_EQ: return PointwiseOp::eq;
    case KILN_OP_TENSOR_NE: return PointwiseOp::ne;
    case KILN_OP_TENSOR_LT: return PointwiseOp::lt;
    case KILN_OP_TENSOR_LE: return PointwiseOp::le;
    case KILN_OP_TENSOR_GT: return PointwiseOp::gt;
    case KILN_OP_TENSOR_GE: return PointwiseOp::ge;
  }
  refuse_enumerator(enumeration_of(op), "op", op);
}

}  // namespace

DataType PointwiseProblem::compute_type() const {
  const bool any_double = std::any_of(
      views.begin(), views.end(), [](const View& view) { return view.type == KILN_DATA_DOUBLE; });
  return any_double ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT;
}

PointwiseProblem make_fill(const Tensor& y) {
  check_output(y, "yDesc");
  return make(PointwiseOp::fill, {y});
}

PointwiseProblem make_transform(const Tensor& x, const Tensor& y) {
  check_output(y, "yDesc");
  check_given(x, "xDesc");
  check_same_sizes(x, "xDesc", y, "yDesc");
  return make(PointwiseOp::copy, {x, y});
}

PointwiseProblem make_add(const Tensor& x, const Tensor& y) {
  check_output(y, "yDesc");
  check_given(x, "xDesc");
  check_same_type(x, "xDesc", y, "yDesc");
  check_broadcasts(x, "xDesc", y, "yDesc");
  return make(PointwiseOp::copy, {x, y});
}

PointwiseProblem make_binary(kilnOpTensorOp_t op, const Tensor& a, const Tensor& b,
                             const Tensor& c) {
  const PointwiseOp which = op_of(op);
  check_output(c, "cDesc");
  check_given(a, "aDesc");
  check_same_type(a, "aDesc", c, "cDesc");
  check_broadcasts(a, "aDesc", c, "cDesc");
  check_given(b, "bDesc");
  check_same_type(b, "bDesc", c, "cDesc");
  check_broadcasts(b, "bDesc", c, "cDesc");
  return make(which, {a, b, c});
}

PointwiseProblem make_activation_forward(const Activation& activation, const Tensor& x,
                                         const Tensor& y) {
  const Activation checked = make_activation(activation);
  check_output(y, "yDesc");
  check_input(x, "xDesc", y, "yDesc");
  PointwiseProblem problem = make(PointwiseOp::activation, {x, y});
  problem.activation = checked;
  return problem;
}

PointwiseProblem make_activation_backward(const Activation& activation, const Tensor& saved,
                                          const char* saved_name, const Tensor& dy,
                                          const Tensor& dx) {
  const Activation checked = make_activation(activation);
  check_output(dx, "dxDesc");
  check_input(saved, saved_name, dx, "dxDesc");
  check_input(dy, "dyDesc", dx, "dxDesc");
  PointwiseProblem problem = make(PointwiseOp::activation_backward, {saved, dy, dx});
  problem.activation = checked;
  return problem;
}

std::vector<Operand> operands_of(const PointwiseProblem& problem) {
  std::vector<const char*> names;
  switch (problem.op) {
    case PointwiseOp::fill: names = {"y"}; break;
    case PointwiseOp::copy:
    case PointwiseOp::activation: names = {"x", "y"}; break;
    case PointwiseOp::activation_backward:
      names = {gradient_from_output(problem.activation) ? "y" : "x", "dy", "dx"};
      break;
    default: names = {"a", "b", "c"};
  }
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PointwiseProblem::View& view = problem.views[i];
    const bool written = i + 1 == names.size();
    Operand operand{names[i], view.type, problem.dims, view.strides, written, !written};
    for (int axis = 0; axis < operand_rank; ++axis)
      if (!written && view.strides[axis] == 0 && operand.dims[axis] != 0) operand.dims[axis] = 1;
    operands.push_back(operand);
  }
  return operands;
}

std::string to_line(const PointwiseProblem& problem) {
  std::string flags;
  if (problem.op == PointwiseOp::activation || problem.op == PointwiseOp::activation_backward) {
    if (problem.op == PointwiseOp::activation_backward) flags = "--dir bwd ";
    flags += print_activation(problem.activation);
  } else {
    constexpr const char* names[] = {"fill", "copy", "",   "",   "add", "mul", "min", "max",
                                     "sub",  "div",  "eq", "ne", "lt",  "le",  "gt",  "ge"};
    flags = cat("--op ", names[static_cast<int>(problem.op)], " ");
  }
  const std::vector<Operand> operands = operands_of(problem);
  return flags + print_operand_flags(operands, problem.rank) + print_shapes(operands, problem.rank);
}

}  // namespace kiln
