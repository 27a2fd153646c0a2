// The canonical softmax problem.
#pragma once

#include <string>
#include <vector>

#include "problem/tensor/operand.hpp"

namespace kiln {

// Forward: y = alpha * softmax(x) + beta * y, or of its logarithm; backward, with y the softmax:
//   dx = alpha * y * (dy - sum of y * dy) + beta * dx         FAST, ACCURATE
//   dx = alpha * (dy - exp(y) * sum of dy) + beta * dx        LOG
// Sums run over the channels at each location (MODE_CHANNEL), or over channels and space of each
// image (MODE_INSTANCE): a row.
//
// Every algorithm subtracts a row's maximum before it takes exp, so that finite x give finite y
// (except a logarithm below the type's range, which is -infinity). FAST uses the hardware's exp,
// whose error is some 2 + |x - maximum| units in the last place. A row that contains NaN or
// +infinity, or only -infinity, becomes NaN. Beside larger elements, -infinity gives 0, or its
// logarithm. Backward, a NaN in y or dy makes its row NaN, as the arithmetic does. Infinities are
// not treated specially either.
struct SoftmaxProblem {
  DataType type = KILN_DATA_FLOAT;
  bool backward = false;
  int rank = 2;  // dimensions of space, after folding; 0 for tensors {N, C}
  kilnSoftmaxAlgorithm_t algorithm = KILN_SOFTMAX_ACCURATE;
  kilnSoftmaxMode_t mode = KILN_SOFTMAX_MODE_CHANNEL;
  Dims dims{};  // {N, C, depth, height, width}; N may be 0
  // In elements. Forward: of x and y; backward: of y, dy and dx.
  Dims x_strides{}, y_strides{}, dy_strides{}, dx_strides{};

  friend bool operator==(const SoftmaxProblem&, const SoftmaxProblem&) = default;
};

// All tensors need the same type and sizes. Throw BAD_PARAM naming the tensor that does not fit.
SoftmaxProblem make_softmax_forward(kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode,
                                    const Tensor& x, const Tensor& y);
SoftmaxProblem make_softmax_backward(kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode,
                                     const Tensor& y, const Tensor& dy, const Tensor& dx);

// Forward: x, y. Backward: y, dy, dx.
std::vector<Operand> operands_of(const SoftmaxProblem& problem);

// The arguments of `kiln softmax`: "--dir bwd --algorithm log --over image 16x64x28x28".
std::string to_line(const SoftmaxProblem& problem);

}  // namespace kiln
