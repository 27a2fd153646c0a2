// The canonical reduction problem.
#pragma once

#include <string>
#include <vector>

#include "problem/tensor/operand.hpp"

namespace kiln {

// c = alpha * reduce(a) + beta * c over every dimension in which c has size 1 and a more. a may
// have strides of 0, and then an element counts as often as it is addressed. Sums are in the
// compute type, in an order that depends only on sizes. NaN among the elements gives NaN, for the
// maximum and minimum too. NORM2 scales its squares, so that no square overflows or underflows
// unless the result does. The bias gradient of a convolution is the sum of dy over N and space.
struct ReductionProblem {
  DataType type = KILN_DATA_FLOAT;
  kilnReduceTensorOp_t op = KILN_REDUCE_SUM;
  int rank = 2;     // dimensions of space, after folding: -1 and 0 for tensors {N} and {N, C}
  Dims dims{};      // of a: {N, C, depth, height, width}; N may be 0
  Dims out_dims{};  // of c: each equal to a's, or 1
  Dims a_strides{}, c_strides{};

  std::int64_t reduced() const;  // elements of a for each of c; 0 if c sums over an empty batch

  friend bool operator==(const ReductionProblem&, const ReductionProblem&) = default;
};

// Throw BAD_PARAM naming the tensor that does not fit. Over an empty batch, a sum or norm is 0 and
// a product is 1; means, maxima and minima are refused, because they have no value.
ReductionProblem make_reduction(kilnReduceTensorOp_t op, const Tensor& a, const Tensor& c);
// db has sizes {1, K, 1...}.
ReductionProblem make_bias_gradient(const Tensor& dy, const Tensor& db);

std::vector<Operand> operands_of(const ReductionProblem& problem);  // a, c

// The arguments of `kiln tensor`: "--op sum 16x64x28x28:1x64x1x1".
std::string to_line(const ReductionProblem& problem);

}  // namespace kiln
