// One forward convolution on small integers, compared for equality.
#pragma once

#include "operation_case.hpp"
#include "problem/problem_line.hpp"

namespace test {

inline ConvolutionProblem problem_of(const std::string& line, DataType type = KILN_DATA_FLOAT,
                                     kilnTensorFormat_t layout = KILN_TENSOR_NCHW,
                                     kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return make_convolution(parse_convolution_line(line), type, layout, mode);
}

struct ForwardCase : OperationCase {
  explicit ForwardCase(const ConvolutionProblem& p, unsigned seed = 1) : OperationCase(p) {
    (*this)["x"].fill_integers(seed, 3);
    (*this)["w"].fill_integers(seed + 1, 2);
  }
};

}  // namespace test
