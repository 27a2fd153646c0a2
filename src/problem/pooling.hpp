// The canonical pooling problem.
#pragma once

#include <string>
#include <vector>

#include "problem/convolution.hpp"
#include "problem/tensor/operand.hpp"

namespace kiln {

// The fields of a pooling descriptor, outermost dimension first.
struct PoolingSpec {
  int spatial = 0;  // 1, 2 or 3; 0: never set
  kilnPoolingMode_t mode = KILN_POOLING_MAX;
  kilnNanPropagation_t nan = KILN_PROPAGATE_NAN;
  Spatial window{1, 1, 1}, pad_before{}, pad_after{}, stride{1, 1, 1}, dilation{1, 1, 1};
  // Positions behind the padding that windows may reach into, and that no average counts. With
  // `ceil` there are as many as the last window needs.
  Spatial overhang{};
  bool ceil = false;  // output sizes are rounded up: kilnSetPoolingCeilMode()

  friend bool operator==(const PoolingSpec&, const PoolingSpec&) = default;
};

// Forward: y[n,c,o] = alpha * pool over taps t of x[n, c, o * stride - pad + t * dilation] + beta *
// y. Backward: dx = alpha * (gradient of that with respect to x, given dy) + beta * dx.
// A maximum ignores taps outside x; without taps inside it is -infinity. The divisor of an average
// counts taps outside x (AVERAGE_COUNT_INCLUDE_PADDING; except those in the overhang) or does not
// (AVERAGE_COUNT_EXCLUDE_PADDING); the average of no taps is 0. A maximum's gradient goes to its
// first maximal tap in the order depth, height, width. Overlapping windows are added in the order
// of the outputs.
// As in ConvolutionProblem, there are always three spatial dimensions.
struct PoolingProblem {
  DataType type = KILN_DATA_FLOAT;
  bool backward = false;
  int rank = 2;            // the caller's number of spatial dimensions
  std::int64_t batch = 0;  // N; may be 0
  std::int64_t channels = 0;
  kilnPoolingMode_t mode = KILN_POOLING_MAX;
  kilnNanPropagation_t nan = KILN_PROPAGATE_NAN;  // PROPAGATE for averages, which always do
  Spatial in{}, out{}, window{};
  Spatial pad{};  // before; negative if elements are not read. `out` implies the padding after
  Spatial stride{1, 1, 1}, dilation{1, 1, 1};
  // Positions by which the last window extends beyond the padding that
  // AVERAGE_COUNT_INCLUDE_PADDING counts; 0 for the other modes.
  Spatial overhang{};
  // {N, C, depth, height, width}. Backward: y's are dy's; a maximum reads x and dy and writes dx,
  // an average reads dy alone, and x_strides are all 0.
  Dims x_strides{}, y_strides{}, dx_strides{};

  std::int64_t extent(int i) const { return (window[i] - 1) * dilation[i] + 1; }
  // The position behind the last tap of the last window; at most in[i] if all taps are inside x.
  std::int64_t end(int i) const { return (out[i] - 1) * stride[i] - pad[i] + extent(i); }

  friend bool operator==(const PoolingProblem&, const PoolingProblem&) = default;
};

// Checks a pooling descriptor's own fields. Throws BAD_PARAM naming the field.
void check_pooling(const PoolingSpec& spec);

// The sizes of y: {N, C, space...}. Throws BAD_PARAM naming the field that does not fit.
TensorDims pooling_output_dims(const PoolingSpec& spec, const Tensor& x,
                               const char* x_name = "xDesc");

// Check the arguments against each other and make the canonical value. Throw BAD_PARAM. Backward, x
// is required for a maximum, and otherwise ignored.
PoolingProblem make_pooling_forward(const PoolingSpec& spec, const Tensor& x, const Tensor& y);
PoolingProblem make_pooling_backward(const PoolingSpec& spec, const Tensor& dy, const Tensor* x,
                                     const Tensor& dx);

// Forward: x, y. Backward: dy, x, dx for a maximum, and dy, dx for an average.
std::vector<Operand> operands_of(const PoolingProblem& problem);

// The arguments of `kiln pool`: "--dir bwd --dt f16 --mode avg_exclude
// mb16ic64_ih112oh56kh3sh2...".
std::string to_line(const PoolingProblem& problem);

}  // namespace kiln
