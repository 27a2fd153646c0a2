#include "problem/result_pass.hpp"

namespace kiln {
namespace {

// The result, of the problem's own rank, with other strides.
Tensor result_with(const ConvolutionProblem& problem, const Operand& result, const Dims& strides) {
  Tensor out;
  out.type = result.type;
  out.rank = problem.rank + 2;
  for (int i = 0; i < out.rank; ++i) {
    const int axis = i < 2 ? i : i + operand_rank - out.rank;
    out.dims[i] = result.dims[axis];
    out.strides[i] = strides[axis];
  }
  return out;
}

}  // namespace

NormalizationProblem moments_of_result(const ConvolutionProblem& problem) {
  const Operand result = operands_of(problem).back();
  return make_normalization_moments(result_with(problem, result, result.strides));
}

NormalizationProblem gradient_of_result(const ConvolutionProblem& problem) {
  const NormalizationGradient& gradient = *problem.epilogue.gradient;
  const Operand result = operands_of(problem).back();
  const Tensor written = result_with(problem, result, result.strides),
               x = result_with(problem, result, problem.norm_x_strides),
               residual = result_with(problem, result, problem.norm_residual_strides);
  NormalizationSpec spec;
  spec.affine = gradient.affine;
  spec.activation = gradient.activation;
  return make_normalization_gradient(spec, x, gradient.residual ? &residual : nullptr, written,
                                     written);
}

}  // namespace kiln
