// The canonical locally connected problem: a convolution whose filter differs from one output pixel
// to the next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/convolution.hpp"

namespace kiln {

// A ConvolutionProblem with weights w[n][o][k][c][t] for each output pixel o, and for each image n
// if images have their own weights. Passes, taps and padding are those of ConvolutionProblem:
//   fprop   y[n,k,o] = alpha * s + bias[k,o] + beta * y, where s = sum over c,t of
//           x[n, c, o * stride - pad + t * dilation] * w[n][o][k][c][t']
//   dgrad   dx = alpha * (gradient of sum of dy * s with respect to x) + beta * dx
//   wgrad   dw = alpha * (gradient of sum of dy * s with respect to w) + beta * dw: a sum over the
//           batch if all images share the weights
// Weights of taps that read padding exist too, and their gradient is 0.
struct LocalProblem {
  ConvolutionProblem conv;  // w_strides: within the weights of one pixel; no epilogue
  // Strides of w, in elements: from one image's weights to the next one's (0: images share them),
  // and from one output pixel's to the next one's along depth, height and width.
  OuterDims outer_strides{};
  bool bias = false;                 // only in fprop; it has the result's type
  Dims bias_dims{}, bias_strides{};  // each size is 1 or that of y, the batch's 1

  bool per_image() const { return outer_strides[0] != 0; }
  std::int64_t bias_stride(int axis) const { return bias_dims[axis] > 1 ? bias_strides[axis] : 0; }

  friend bool operator==(const LocalProblem&, const LocalProblem&) = default;
};

// Check the tensors against each other and make the canonical value, or throw BAD_PARAM. Weights
// are tensors {output space..., K, C per group, filter space...}, with N before them if each image
// has its own, or 1. A bias has in each dimension y's size or 1, and 1 for the batch; null: none.
LocalProblem make_local(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                        const Tensor* bias, const Tensor& y);
LocalProblem make_local_dgrad(const ConvolutionSpec& spec, const Tensor& w, const Tensor& dy,
                              const Tensor& dx);
LocalProblem make_local_wgrad(const ConvolutionSpec& spec, const Tensor& x, const Tensor& dy,
                              const Tensor& dw);

// Dense weights for a filter {K, C per group, space...} and an output {N, K, space...}. order: the
// order of their dimensions, outermost first: p (output pixels), k, c and t (taps), each once, and
// n if each image has its own weights. Throws BAD_PARAM naming `option`.
Tensor local_weights(const Tensor& filter, const Tensor& y, std::string_view order,
                     const char* option);

// fprop: x, w, bias if there is one, y. dgrad: w, dy, dx. wgrad: x, dy, dw.
std::vector<Operand> operands_of(const LocalProblem& problem);

// The arguments of `kiln local`: the convolution's flags, "--weights ptck" if the order is not that
// of the layout (pkct, for nhwc pktc), "--bias element", and the convolution's line.
std::string to_line(const LocalProblem& problem);

}  // namespace kiln
