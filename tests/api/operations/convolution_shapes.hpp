// A convolution with a padding, stride and dilation that differ by side and dimension, in two
// groups.
#pragma once

#include "operation_check.hpp"

namespace test {

inline ConvolutionSpec spec_of(DataType type, kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  ConvolutionSpec spec;
  spec.spatial = 2;
  spec.pad_before = {1, 0};
  spec.pad_after = {2, 1};
  spec.stride = {2, 1, 1};
  spec.dilation = {1, 2, 1};
  spec.groups = 2;
  spec.mode = mode;
  spec.compute_type = compute_type(type);
  return spec;
}

// Tensors that fit that convolution.
struct Shapes {
  Tensor x, w, y, bias;
  explicit Shapes(DataType type, kilnTensorFormat_t format = KILN_TENSOR_NCHW)
      : x(tensor(type, {2, 4, 9, 8}, format)),
        w(tensor(type, {6, 2, 3, 2}, format)),
        y(tensor(type, {2, 6, 5, 7}, format)),
        bias(tensor(type, {1, 6, 1, 1}, format)) {}
};

}  // namespace test
