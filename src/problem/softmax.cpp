#include "problem/softmax.hpp"

#include "core/error.hpp"
#include "problem/line/shape_line.hpp"
#include "problem/tensor/checks.hpp"
#include "problem/tensor/fold.hpp"

namespace kiln {
namespace {

void check_kinds(kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode) {
  check_enumerator("algorithm", algorithm);
  check_enumerator("mode", mode);
}

std::vector<Tensor> fold(kilnSoftmaxMode_t mode, const std::vector<Tensor>& tensors) {
  return folded(tensors, tensors.size() - 1,
                mode == KILN_SOFTMAX_MODE_CHANNEL ? Fold::space : Fold::image);
}

SoftmaxProblem make(kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode, const Tensor& out) {
  SoftmaxProblem problem;
  problem.type = out.type;
  problem.rank = out.rank - 2;
  problem.algorithm = algorithm;
  problem.mode = mode;
  problem.dims = make_operand("", out).dims;
  return problem;
}

void check_output(const Tensor& tensor, const char* name) {
  check_given(tensor, name);
  if (tensor.rank < 2)
    fail(KILN_STATUS_BAD_PARAM, name, " has 1 dimension; expected at least 2, of which the second ",
         "is the channels");
  check_writable(tensor, name);
}

void check_pair(const Tensor& in, const char* name, const Tensor& out, const char* out_name) {
  check_given(in, name);
  check_same_type(in, name, out, out_name);
  check_same_sizes(in, name, out, out_name);
}

Dims strides_of(const Tensor& tensor) { return make_operand("", tensor).strides; }

}  // namespace

SoftmaxProblem make_softmax_forward(kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode,
                                    const Tensor& x, const Tensor& y) {
  check_kinds(algorithm, mode);
  check_output(y, "yDesc");
  check_pair(x, "xDesc", y, "yDesc");
  const std::vector<Tensor> tensors = fold(mode, {x, y});
  SoftmaxProblem problem = make(algorithm, mode, tensors[1]);
  problem.x_strides = strides_of(tensors[0]);
  problem.y_strides = strides_of(tensors[1]);
  return problem;
}

SoftmaxProblem make_softmax_backward(kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode,
                                     const Tensor& y, const Tensor& dy, const Tensor& dx) {
  check_kinds(algorithm, mode);
  check_output(dx, "dxDesc");
  check_pair(y, "yDesc", dx, "dxDesc");
  check_pair(dy, "dyDesc", dx, "dxDesc");
  const std::vector<Tensor> tensors = fold(mode, {y, dy, dx});
  SoftmaxProblem problem = make(algorithm, mode, tensors[2]);
  problem.backward = true;
  problem.y_strides = strides_of(tensors[0]);
  problem.dy_strides = strides_of(tensors[1]);
  problem.dx_strides = strides_of(tensors[2]);
  return problem;
}

std::vector<Operand> operands_of(const SoftmaxProblem& p) {
  if (!p.backward)
    return {{"x", p.type, p.dims, p.x_strides, false, true},
            {"y", p.type, p.dims, p.y_strides, true}};
  return {{"y", p.type, p.dims, p.y_strides},
          {"dy", p.type, p.dims, p.dy_strides, false, true},
          {"dx", p.type, p.dims, p.dx_strides, true}};
}

std::string to_line(const SoftmaxProblem& problem) {
  const std::vector<Operand> operands = operands_of(problem);
  return cat(problem.backward ? "--dir bwd " : "",
             problem.algorithm == KILN_SOFTMAX_ACCURATE
                 ? ""
                 : cat("--algorithm ", name_of(problem.algorithm), " "),
             problem.mode == KILN_SOFTMAX_MODE_INSTANCE ? "--over image " : "",
             print_operand_flags(operands, problem.rank), print_shapes(operands, problem.rank));
}

}  // namespace kiln
