#include "problem/reduction.hpp"

#include "core/error.hpp"
#include "problem/line/shape_line.hpp"
#include "problem/tensor/checks.hpp"
#include "problem/tensor/fold.hpp"

namespace kiln {
namespace {

ReductionProblem make(kilnReduceTensorOp_t op, const Tensor& a, const char* a_name, const Tensor& c,
                      const char* c_name) {
  check_enumerator("op", op);
  check_given(a, a_name);
  check_given(c, c_name);
  check_same_type(c, c_name, a, a_name);
  check_broadcasts(c, c_name, a, a_name);
  check_writable(c, c_name);
  const bool of_nothing = op == KILN_REDUCE_SUM || op == KILN_REDUCE_NORM2 ||
                          op == KILN_REDUCE_NORM1 || op == KILN_REDUCE_MUL;
  if (a.dims[0] == 0 && c.dims[0] == 1 && !of_nothing)
    fail(KILN_STATUS_BAD_PARAM, a_name, ": dims[0] is 0; expected at least 1, for ", name_of(op),
         " over nothing has no value");
  const std::vector<Tensor> tensors = folded({a, c}, 0, Fold::any);
  const Operand from = make_operand("a", tensors[0]), to = make_operand("c", tensors[1]);
  ReductionProblem problem;
  problem.type = a.type;
  problem.op = op;
  problem.rank = tensors[0].rank - 2;
  problem.dims = from.dims;
  problem.out_dims = to.dims;
  problem.a_strides = from.strides;
  problem.c_strides = to.strides;
  return problem;
}

}  // namespace

std::int64_t ReductionProblem::reduced() const {
  std::int64_t count = 1;
  for (int i = 0; i < operand_rank; ++i)
    if (out_dims[i] == 1) count *= dims[i];
  return count;
}

ReductionProblem make_reduction(kilnReduceTensorOp_t op, const Tensor& a, const Tensor& c) {
  return make(op, a, "aDesc", c, "cDesc");
}

ReductionProblem make_bias_gradient(const Tensor& dy, const Tensor& db) {
  check_given(dy, "dyDesc");
  check_given(db, "dbDesc");
  if (dy.rank < 2)
    fail(KILN_STATUS_BAD_PARAM, "dyDesc has 1 dimension; expected at least 2, of which the second ",
         "is the channels");
  check_one_a_channel(db, "dbDesc", dy, "dyDesc");
  return make(KILN_REDUCE_SUM, dy, "dyDesc", db, "dbDesc");
}

std::vector<Operand> operands_of(const ReductionProblem& problem) {
  return {{"a", problem.type, problem.dims, problem.a_strides},
          {"c", problem.type, problem.out_dims, problem.c_strides, true}};
}

std::string to_line(const ReductionProblem& problem) {
  const std::vector<Operand> operands = operands_of(problem);
  return cat("--op ", name_of(problem.op), " ", print_operand_flags(operands, problem.rank),
             print_shapes(operands, problem.rank));
}

}  // namespace kiln
