// The canonical convolution problem: a plain value that every engine reads.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "problem/tensor.hpp"

namespace kiln {

using Spatial = std::array<std::int64_t, 3>;

// What a convolution descriptor holds, outermost dimension first.
struct ConvolutionSpec {
  int spatial = 0;  // 1, 2 or 3; 0: never set
  Spatial pad_before{}, pad_after{}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::int64_t groups = 1;
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;
  DataType compute_type = KILN_DATA_FLOAT;

  friend bool operator==(const ConvolutionSpec&, const ConvolutionSpec&) = default;
};

// y[n,k,o] = alpha * sum over c,t of x[n, c, o * stride - pad + t * dilation] * w[k, c, t'] + beta
// * y with t' = t for cross-correlation and the flipped tap for convolution; elements of x outside
// the tensor count as zero.
//
// Always three spatial dimensions (depth, height, width): a problem of fewer has leading ones of
// size 1, stride 1, pad 0. Equal problems compare equal: strides of dimensions of size 1 are 0, but
// for the batch's, since a kernel serves every batch size.
struct ConvolutionProblem {
  enum : int { depth = 0, height = 1, width = 2 };

  DataType type = KILN_DATA_FLOAT;
  int rank = 2;            // the caller's number of spatial dimensions
  std::int64_t batch = 0;  // N; may be 0
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;   // C, all groups
  std::int64_t out_channels = 0;  // K, all groups
  Spatial in{}, filter{}, out{};  // D,H,W - T,R,S - O,P,Q
  Spatial pad{};                  // before; the padding after is what `out` implies
  Spatial stride{1, 1, 1}, dilation{1, 1, 1};
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;

  // Strides in elements: {batch or K, channel, depth, height, width}.
  std::array<std::int64_t, 5> x_strides{}, w_strides{}, y_strides{};

  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  std::int64_t out_pixels() const { return out[0] * out[1] * out[2]; }  // of one image
  std::int64_t taps() const { return filter[0] * filter[1] * filter[2]; }
  double flops() const;  // 2 * N*K*O*P*Q*(C/g)*T*R*S

  friend bool operator==(const ConvolutionProblem&, const ConvolutionProblem&) = default;
};

// (in + pad_before + pad_after - ((filter-1)*dilation+1)) / stride + 1; may be < 1 if it does not
// fit.
std::int64_t output_size(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after,
                         std::int64_t filter, std::int64_t stride, std::int64_t dilation);

// Checks a convolution descriptor's own fields. Throws BAD_PARAM.
void check_convolution(const ConvolutionSpec& spec);

// The sizes of y: {N, K, space...}. Throws BAD_PARAM naming the field that does not fit.
Dims forward_output_dims(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w);

// Checks everything against everything and makes the canonical value. Throws BAD_PARAM.
ConvolutionProblem make_convolution(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                                    const Tensor& y);

// The problem as benchdnn writes it, with what differs from its defaults in front in `kiln conv`'s
// flags: "--dt f16 --layout nhwc g1mb128_ic96ih64..."; the reproducer in every log line. A tensor
// that is not dense in the layout adds its strides, in elements, in the problem's own rank and
// outermost first, 0 for dimensions of size 1: "--x-strides 9216:96:12:1" (so --w-strides,
// --y-strides).
std::string to_line(const ConvolutionProblem& problem);

}  // namespace kiln
