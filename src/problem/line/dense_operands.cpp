// The dense tensors that a problem line describes.
#include "problem/line/problem_line.hpp"

namespace kiln {

ConvolutionOperands describe_convolution(const ConvolutionLine& line, DataType type,
                                         kilnTensorFormat_t layout, kilnConvolutionMode_t mode) {
  ConvolutionOperands operands;
  ConvolutionSpec& spec = operands.spec;
  spec.spatial = line.rank;
  spec.groups = line.groups;
  spec.mode = mode;
  spec.compute_type = compute_type(type);

  operands.x.dims = {line.batch, line.in_channels};
  operands.w.dims = {line.out_channels, line.in_channels / line.groups};
  operands.y.dims = {line.batch, line.out_channels};
  for (int i = 0, axis = 3 - line.rank; i < line.rank; ++i, ++axis) {
    spec.pad_before[i] = line.pad_before[axis];
    spec.pad_after[i] = line.pad_after[axis];
    spec.stride[i] = line.stride[axis];
    spec.dilation[i] = line.dilation[axis];
    operands.x.dims[i + 2] = line.in[axis];
    operands.w.dims[i + 2] = line.filter[axis];
    operands.y.dims[i + 2] = line.out[axis];
  }
  const auto make_dense = [&](Tensor& tensor, const char* name) {
    tensor.type = type;
    tensor.rank = line.rank + 2;
    check_tensor(tensor, name, true);  // so that the dense strides do not overflow
    tensor.strides = dense_strides(layout, tensor.rank, tensor.dims);
  };
  make_dense(operands.x, "x");
  make_dense(operands.w, "w");
  make_dense(operands.y, "y");
  return operands;
}

ConvolutionProblem make_convolution(const ConvolutionLine& line, DataType type,
                                    kilnTensorFormat_t layout, kilnConvolutionMode_t mode) {
  const ConvolutionOperands operands = describe_convolution(line, type, layout, mode);
  return make_convolution(operands.spec, operands.x, operands.w, operands.y);
}

}  // namespace kiln
