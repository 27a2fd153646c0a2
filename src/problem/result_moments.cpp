#include "problem/result_moments.hpp"

namespace kiln {

NormalizationProblem moments_of_result(const ConvolutionProblem& problem) {
  const Operand result = operands_of(problem).back();
  Tensor x;
  x.type = result.type;
  x.rank = problem.rank + 2;
  for (int i = 0; i < x.rank; ++i) {
    const int axis = i < 2 ? i : i + operand_rank - x.rank;
    x.dims[i] = result.dims[axis];
    x.strides[i] = result.strides[axis];
  }
  return make_normalization_moments(x);
}

}  // namespace kiln
