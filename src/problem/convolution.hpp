// The canonical convolution problem: a plain value that every engine reads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "problem/epilogue.hpp"
#include "problem/tensor/operand.hpp"
#include "problem/tensor/tensor.hpp"

namespace kiln {

using Spatial = std::array<std::int64_t, 3>;

// The fields of a convolution descriptor, outermost dimension first.
struct ConvolutionSpec {
  int spatial = 0;  // 1, 2 or 3; 0: never set
  Spatial pad_before{}, pad_after{}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::int64_t groups = 1;
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;
  DataType compute_type = KILN_DATA_FLOAT;
  kilnMathMode_t math = KILN_MATH_DEFAULT;
  std::int64_t alignment = 16;  // bytes, of every operand

  friend bool operator==(const ConvolutionSpec&, const ConvolutionSpec&) = default;
};

// In elements, from one group's channels, filters or channels of the result to the next one's,
// where they do not follow each other. All groups share the first group's bias.
struct GroupStrides {
  std::int64_t x = 0, w = 0, y = 0, z = 0;
  friend bool operator==(const GroupStrides&, const GroupStrides&) = default;
};

// Which of the three tensors a convolution computes from the other two.
enum class ConvolutionPass : std::uint8_t { fprop, dgrad, wgrad };

// With s(n,k,o) = sum over c,t of x[n, c, o * stride - pad + t * dilation] * w[k, c, t'], where
// t' = t for cross-correlation and the flipped tap for convolution, and elements of x outside the
// tensor count as zero:
//   fprop   y = epilogue(alpha * s), and with moments n, m and M2 of each channel of y as stored
//   dgrad   dx = epilogue(alpha * (gradient of sum of dy * s with respect to x)), likewise; with a
//           normalization's gradient, in either pass, its sums dscale and dbias too
//   wgrad   dw = alpha * (gradient of sum of dy * s with respect to w) + beta * dw
// x, w and y below stand for dx, dw and dy as well: they have the same sizes.
//
// There are always three spatial dimensions (depth, height, width): those that a problem lacks have
// size 1, stride 1, pad 0. Equal problems compare equal: strides of dimensions of size 1 are 0. The
// batch's stride is kept, because a kernel serves every batch size.
struct ConvolutionProblem {
  enum : int { depth = 0, height = 1, width = 2 };

  ConvolutionPass pass = ConvolutionPass::fprop;
  // Element types of the tensors. The two inputs have one type; z and the bias have the result's
  // type.
  DataType x_type = KILN_DATA_FLOAT, w_type = KILN_DATA_FLOAT, y_type = KILN_DATA_FLOAT;
  int rank = 2;            // the caller's number of spatial dimensions
  std::int64_t batch = 0;  // N; may be 0
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;   // C, all groups
  std::int64_t out_channels = 0;  // K, all groups
  Spatial in{}, filter{}, out{};  // D,H,W - T,R,S - O,P,Q
  Spatial pad{};                  // before; `out` implies the padding after
  Spatial stride{1, 1, 1}, dilation{1, 1, 1};
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;
  kilnMathMode_t math = KILN_MATH_DEFAULT;  // TF32 only for f32
  std::int64_t alignment = 16;   // bytes that every operand is aligned to; no kernel needs more
  ConvolutionEpilogue epilogue;  // of fprop and dgrad

  // Strides in elements: {batch or K, channel, depth, height, width}; z's are 0 if there is no z.
  Dims x_strides{}, w_strides{}, y_strides{}, z_strides{};
  std::int64_t bias_stride = 0;  // from one channel's bias to the next; 0 if there is none
  // Of the tensors that a normalization's gradient reads; 0 if there are none.
  Dims norm_x_strides{}, norm_residual_strides{};
  std::optional<GroupStrides> group_strides{};  // of products of matrices (product_views.hpp)

  DataType type() const {
    return pass == ConvolutionPass::dgrad ? y_type : x_type;
  }  // of the inputs
  DataType result_type() const {
    return pass == ConvolutionPass::fprop   ? y_type
           : pass == ConvolutionPass::dgrad ? x_type
                                            : w_type;
  }
  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  std::int64_t in_pixels() const { return in[0] * in[1] * in[2]; }      // of one image
  std::int64_t out_pixels() const { return out[0] * out[1] * out[2]; }  // of one image
  std::int64_t taps() const { return filter[0] * filter[1] * filter[2]; }
  Dims x_dims() const { return {batch, in_channels, in[0], in[1], in[2]}; }
  Dims w_dims() const { return {out_channels, group_in(), filter[0], filter[1], filter[2]}; }
  Dims y_dims() const { return {batch, out_channels, out[0], out[1], out[2]}; }
  Dims result_dims() const {
    return pass == ConvolutionPass::fprop   ? y_dims()
           : pass == ConvolutionPass::dgrad ? x_dims()
                                            : w_dims();
  }
  double flops() const;  // 2 * N*K*O*P*Q*(C/g)*T*R*S, in every pass

  friend bool operator==(const ConvolutionProblem&, const ConvolutionProblem&) = default;
};

// (in + pad_before + pad_after - ((filter-1)*dilation+1)) / stride + 1; below 1 if the filter does
// not fit.
std::int64_t output_size(std::int64_t in, std::int64_t pad_before, std::int64_t pad_after,
                         std::int64_t filter, std::int64_t stride, std::int64_t dilation);

// Checks a convolution descriptor's own fields. Throws BAD_PARAM.
void check_convolution(const ConvolutionSpec& spec);
void check_math(kilnMathMode_t math);
void check_alignment(std::int64_t alignment);

// The caller's names of the three tensors, for error messages.
struct ConvolutionNames {
  const char *x = "xDesc", *w = "wDesc", *y = "yDesc";
  int filter = 0;  // index of the filter's first size among w's
};
inline constexpr ConvolutionNames dgrad_names{"dxDesc", "wDesc", "dyDesc"};
inline constexpr ConvolutionNames wgrad_names{"xDesc", "dwDesc", "dyDesc"};
inline constexpr ConvolutionNames transposed_names{"yDesc", "wDesc", "xDesc"};

// The sizes of y: {N, K, space...}. Throws BAD_PARAM naming the field that does not fit.
TensorDims forward_output_dims(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                               const ConvolutionNames& names = {});

// The sizes of the transposed convolution's output, for an input of K channels: the smallest tensor
// whose convolution has x's sizes, plus `extra` elements in each dimension of space, less than the
// stride or than the dilation (extra may be null). Throws BAD_PARAM.
TensorDims transposed_output_dims(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                                  const std::int64_t* extra);

// Each checks its arguments against each other and makes the canonical value, or throws BAD_PARAM
// (for an epilogue also NOT_SUPPORTED). A bias has one element per channel of the result: its sizes
// are {1, channels, 1...}. The result of f16 or bf16 tensors may be f32.
ConvolutionProblem make_convolution(const ConvolutionSpec& spec, const Tensor& x, const Tensor& w,
                                    const Tensor& y, const EpilogueList& epilogue = {});
ConvolutionProblem make_convolution_dgrad(const ConvolutionSpec& spec, const Tensor& w,
                                          const Tensor& dy, const Tensor& dx,
                                          const ConvolutionNames& names = dgrad_names);
// y = the transposed convolution of x: a data gradient. y has the sizes transposed_output_dims().
ConvolutionProblem make_convolution_transposed(const ConvolutionSpec& spec, const Tensor& x,
                                               const Tensor& w, const Tensor& y,
                                               const EpilogueList& epilogue = {});
ConvolutionProblem make_convolution_wgrad(const ConvolutionSpec& spec, const Tensor& x,
                                          const Tensor& dy, const Tensor& dw);

// Makes the problem of any pass, without an epilogue. The result must not overlap itself.
ConvolutionProblem make_pass(ConvolutionPass pass, const ConvolutionSpec& spec, const Tensor& x,
                             const Tensor& w, const Tensor& y, const ConvolutionNames& names);

// The operands in the order of an execution. fprop: x, w, y; dgrad: w, dy, dx; both with z, bias
// and "moments", if there are any, before the result; moments are {3, channels} of the compute
// type: all n, all m, all M2. wgrad: x, dy, dw. A normalization's gradient has, before the result
// too, those of a normalization's backward pass that it needs: norm_x, norm_scale, norm_bias,
// norm_mean, norm_deviation, norm_residual, norm_dscale, norm_dbias.
std::vector<Operand> operands_of(const ConvolutionProblem& problem);

// The problem in benchdnn's notation, after `kiln conv`'s flags for everything that differs from
// the defaults: "--dir dgrad --dt f16 --layout nhwc g1mb128_ic96ih64...". Log lines contain it, so
// that the problem can be reproduced. If types differ, those of x, w and y are written: "--dt
// f16:f16:f32". A tensor that is not dense in the layout adds its strides in elements, outermost
// first, one for each dimension of the problem's own rank, 0 for dimensions of size 1: "--x-strides
// 9216:96:12:1". Its flag is --x-strides, --w-strides, --y-strides or --z-strides in every pass
// (dx has --x-strides), --norm-x-strides and --norm-residual-strides.
std::string to_line(const ConvolutionProblem& problem);

}  // namespace kiln
