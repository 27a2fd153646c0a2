// Shared by the references of convolutions and of locally connected layers: sums of products, which
// input each tap meets, and the output of a sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "reference/reference.hpp"

namespace kiln::reference {

struct Sum {
  double value = 0, magnitude = 0;
  double factors = 0;         // the sum of the absolute values of all factors
  bool padding_lost = false;  // a product with padding, which is zero, is NaN

  void add(double a, double b) {
    value += a * b;
    magnitude += std::fabs(a * b);
    factors += std::fabs(a) + std::fabs(b);
  }
  void add_padding(double factor) { padding_lost |= !std::isfinite(factor); }
};

inline std::int64_t flipped(const ConvolutionProblem& problem, int axis, std::int64_t tap) {
  return problem.mode == KILN_CONVOLUTION ? problem.filter[axis] - 1 - tap : tap;
}

// Along one dimension, tap t of output o meets the input at place(o, t).
inline std::int64_t place(const ConvolutionProblem& problem, int axis, std::int64_t output,
                          std::int64_t tap) {
  return output * problem.stride[axis] - problem.pad[axis] + tap * problem.dilation[axis];
}

// The taps t, first <= t < last, of one output that meet the input; the others meet padding.
struct Taps {
  std::int64_t first, last;
  bool inside(std::int64_t t) const { return t >= first && t < last; }

  Taps(const ConvolutionProblem& problem, int axis, std::int64_t output) {
    const std::int64_t in = problem.in[axis], dilation = problem.dilation[axis];
    const std::int64_t origin = place(problem, axis, output, 0);
    first = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
    last = origin < in ? std::min(problem.filter[axis], (in - 1 - origin) / dilation + 1) : 0;
  }
};

// The output whose tap t meets the input at `input`: `padding` if it lies before the first or
// behind the last one; `none` between two of them.
inline constexpr std::int64_t padding = -1, none = -2;
inline std::int64_t output_at(const ConvolutionProblem& problem, int axis, std::int64_t input,
                              std::int64_t tap) {
  const std::int64_t numerator = input + problem.pad[axis] - tap * problem.dilation[axis];
  if (numerator % problem.stride[axis] != 0) return none;
  const std::int64_t output = numerator / problem.stride[axis];
  return output >= 0 && output < problem.out[axis] ? output : padding;
}

// The memory of a named operand; null if the problem has none of that name.
const void* memory_of(const std::vector<Operand>& operands, const Request& request,
                      std::string_view name);

// The output of a sum of at most `terms` products. residual: what beta scales, scaled.
Expected finish(const ConvolutionProblem& problem, const Scalars& scalars, const Sum& sum,
                double terms, double residual, double bias);

}  // namespace kiln::reference
