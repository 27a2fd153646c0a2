// The canonical normalization problem.
#pragma once

#include <string>
#include <vector>

#include "problem/activation.hpp"
#include "problem/tensor/operand.hpp"

namespace kiln {

enum class NormalizationPass : std::uint8_t {
  training,
  inference,
  apply,
  backward,
  gradient,
  backward_apply,
  moments,
  combine
};

// Whether a pass makes dx from dy.
constexpr bool is_backward(NormalizationPass pass) {
  using Pass = NormalizationPass;
  return pass == Pass::backward || pass == Pass::gradient || pass == Pass::backward_apply;
}

// What elements share a mean and a deviation: those of a channel in all images; those of C / groups
// neighboring channels of an image; or the channels of one pixel.
enum class NormalizationOver : std::uint8_t { batch, group, pixel };

// Normalization by the statistics of n elements each (NormalizationOver): m their mean, M2 the sum
// of (x - m)^2, or, not centered, m = 0; s = 1 / sqrt(M2 / n + epsilon), scale and bias those of
// the channel, and p = (x - m) * s * scale + bias + residual. Of the batch:
//   training    y = alpha * act(p) + beta * y; m and s are results, and
//               running_mean += factor * (m - running_mean), running_variance likewise with
//               M2 / (n - 1)
//   inference   the same y with m and M2 / n that are given
//   apply       the same y with m and s that are given
//   backward    with g = dy * act'(p): dbias = sum of g, dscale = sum of g (x - m) s, dresidual =
//   g,
//               dx = alpha * scale * s * (g - dbias / n - (x - m) s * dscale / n) + beta * dx; or,
//               frozen, alpha * scale * s * g + beta * dx, as m and s do not depend on x
//   gradient    the first half of backward: dx = g, rounded to its type, and dbias and dscale of
//               these g; relu's g is dy unless p <= 0, and 0 then
//   backward_apply  the second half: dx from g, which is its dy, and sums that are given
//   moments     n, m and M2 of each channel
//   combine     those of all parts of a batch from those of each, and what training makes of them
// Of groups and pixels there are training, without running statistics, and backward:
//               with h = g * scale, dx = alpha * s * (h - sum of h / n - (x - m) * s^2 * (sum of h
//               (x - m)) / n) + beta * dx, without the first sum where m = 0
// alpha, beta and factor are arguments of an execution; factor is its alpha2.
struct NormalizationProblem {
  DataType type = KILN_DATA_FLOAT;
  NormalizationPass pass = NormalizationPass::training;
  int rank = 2;           // dimensions of space, after folding; 0 for tensors {N, C}
  bool affine = true;     // there is a scale; else 1
  bool bias = true;       // there is a bias; else 0
  bool running = true;    // training and combine update running statistics
  bool residual = false;  // it is added before the activation
  bool frozen = false;    // backward: m and s are constants
  bool centered = true;   // else m is 0, and there is no mean
  NormalizationOver over = NormalizationOver::batch;
  std::int64_t groups = 0;  // of an image's channels; 0: statistics are not those of groups
  double epsilon = 1e-5;
  Activation activation;
  Dims dims{};  // {N, C, depth, height, width}; of combine {parts, C, 1, 1, 1}
  // In elements. dy and dx: of backward, whose y there is none.
  Dims x_strides{}, residual_strides{}, y_strides{}, dy_strides{}, dresidual_strides{},
      dx_strides{};

  DataType parameter_type() const;  // of scale, bias and statistics: the compute type
  std::int64_t count() const;       // n
  std::int64_t space() const { return dims[2] * dims[3] * dims[4]; }
  // Means and deviations of an image; of batch those of all images.
  std::int64_t statistics() const;

  friend bool operator==(const NormalizationProblem&, const NormalizationProblem&) = default;
};

// What a descriptor holds.
struct NormalizationSpec {
  bool affine = true, running = true, frozen = false, bias = true;
  double epsilon = 1e-5;
  kilnNormalizationStatistics_t statistics = KILN_NORMALIZATION_BATCH;
  std::int64_t groups = 0;  // of KILN_NORMALIZATION_GROUP
  bool centered = true;
  Activation activation;
};

// Throws BAD_PARAM naming the field.
void check_normalization(const NormalizationSpec& spec);

// x, y, residual and the gradients have the same type and sizes, of at least two dimensions;
// residual and dresidual may be null. Throw BAD_PARAM naming the tensor that does not fit, groups
// that do not divide the channels, and in training of the batch a channel of fewer than two
// elements, whose variance has no unbiased estimate. Statistics of pixels: at most five dimensions,
// else NOT_SUPPORTED. All but training and backward are of the batch.
NormalizationProblem make_normalization_training(const NormalizationSpec& spec, const Tensor& x,
                                                 const Tensor* residual, const Tensor& y);
NormalizationProblem make_normalization_inference(const NormalizationSpec& spec, const Tensor& x,
                                                  const Tensor* residual, const Tensor& y);
NormalizationProblem make_normalization_apply(const NormalizationSpec& spec, const Tensor& x,
                                              const Tensor* residual, const Tensor& y);
// dresidual is given where residual is.
NormalizationProblem make_normalization_backward(const NormalizationSpec& spec, const Tensor& x,
                                                 const Tensor* residual, const Tensor& dy,
                                                 const Tensor* dresidual, const Tensor& dx);

// What comes before the sums are known. residual may be null.
NormalizationProblem make_normalization_gradient(const NormalizationSpec& spec, const Tensor& x,
                                                 const Tensor* residual, const Tensor& dy,
                                                 const Tensor& dx);

// What comes after they are known. Of spec whether there is a scale; frozen, dx needs no sums and
// is refused.
NormalizationProblem make_normalization_backward_apply(const NormalizationSpec& spec,
                                                       const Tensor& x, const Tensor& dy,
                                                       const Tensor& dx);

// x has at least two dimensions.
NormalizationProblem make_normalization_moments(const Tensor& x);
// Of `parts` moments of `channels` channels of a tensor of `type`.
NormalizationProblem make_normalization_combine(const NormalizationSpec& spec, DataType type,
                                                std::int64_t parts, std::int64_t channels);

// Those that the problem has of:
//   training    x, scale, bias, residual, running_mean, running_variance, mean, deviation, y
//   inference   x, scale, bias, mean, variance, residual, y
//   apply       x, scale, bias, mean, deviation, residual, y
//   backward    x, scale, bias, mean, deviation, residual, dy, dscale, dbias, dresidual, dx
//   gradient    x, scale, bias, mean, deviation, residual, dy, dscale, dbias, dx
//   backward_apply  x, scale, mean, deviation, dy, dscale, dbias, dx
//   moments     x, moments
//   combine     parts, running_mean, running_variance, mean, deviation, moments
// "deviation" is s, the inverse deviation. Those of a channel are dense, in parameter_type(), and
// "moments" too: all n, all m, all M2; "parts" are moments one after another. Of groups and pixels
// mean and deviation are dense too, {N, groups} or {N, space}, there are no running statistics, and
// dscale and dbias only where there are scale and bias.
std::vector<Operand> operands_of(const NormalizationProblem& problem);

// The arguments of `kiln norm`: "--dir bwd --act relu --residual --dt f16 --layout nhwc 16x64x8x8".
std::string to_line(const NormalizationProblem& problem);

}  // namespace kiln
