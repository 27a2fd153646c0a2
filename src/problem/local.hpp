// The canonical locally connected problem: a convolution whose filter differs from one output pixel
// to the next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/convolution.hpp"

namespace kiln {

// As ConvolutionProblem, whose passes, taps and padding these are, with weights w[n][o][k][c][t] of
// each output pixel o, and of each image n where images have weights of their own:
//   fprop   y[n,k,o] = alpha * s + bias[k,o] + beta * y, where s = sum over c,t of
//           x[n, c, o * stride - pad + t * dilation] * w[n][o][k][c][t']
//   dgrad   dx = alpha * (gradient of sum of dy * s with respect to x) + beta * dx
//   wgrad   dw = alpha * (gradient of sum of dy * s with respect to w) + beta * dw: of weights that
//           all images share a sum over the batch
// A pixel and a tap that meet padding have weights too, whose gradient is 0.
struct LocalProblem {
  ConvolutionProblem conv;  // w_strides: within the weights of one pixel; no epilogue
  // Of w: from one image's weights to the next (0: all share them), and from one output pixel's to
  // the next along depth, height and width.
  OuterDims outer_strides{};
  bool bias = false;                 // of fprop, in the result's type
  Dims bias_dims{}, bias_strides{};  // each size is 1 or that of y, the batch's 1

  bool per_image() const { return outer_strides[0] != 0; }
  std::int64_t bias_stride(int axis) const { return bias_dims[axis] > 1 ? bias_strides[axis] : 0; }

  friend bool operator==(const LocalProblem&, const LocalProblem&) = default;
};

// Weights are tensors {output space..., K, C per group, filter space...}, with N or 1 before them
// where each image has its own. A bias has y's sizes or 1 in each, and 1 for the batch; null: none.
// Check everything against everything and make the canonical value, or throw BAD_PARAM.
LocalProblem make_local(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                        const Tensor* bias, const Tensor& y);
LocalProblem make_local_dgrad(const ConvolutionSpec& spec, const Tensor& w, const Tensor& dy,
                              const Tensor& dx);
LocalProblem make_local_wgrad(const ConvolutionSpec& spec, const Tensor& x, const Tensor& dy,
                              const Tensor& dw);

// Dense weights for a filter {K, C per group, space...} and an output {N, K, space...} of the order
// that the letters name, outermost first: p the output pixels, k, c, t the taps, each once, and n
// where each image has its own. Throws BAD_PARAM naming `option`.
Tensor local_weights(const Tensor& filter, const Tensor& y, std::string_view order,
                     const char* option);

// fprop: x, w, bias if there is one, y. dgrad: w, dy, dx. wgrad: x, dy, dw.
std::vector<Operand> operands_of(const LocalProblem& problem);

// What follows `kiln local`: the flags of the convolution, "--weights ptck" where the order is not
// that of the layout (pkct, pktc of nhwc), "--bias element", and the convolution's line.
std::string to_line(const LocalProblem& problem);

}  // namespace kiln
