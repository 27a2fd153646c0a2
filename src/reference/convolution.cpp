// Convolution by its definition: each pass walks the pairs of elements that meet in one output.
//
// An f32 (f64) kernel sums K products; partial sum s_i is rounded with an error of at most u |s_i|,
// u = 2^-24 (2^-53). Taking these errors as independent and of mean zero, Hoeffding's inequality
// bounds the error of the sum by c u sqrt(sum of s_i^2) except with probability 2 exp(-c^2 / 2)
// (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019). With s the
// whole sum and M the sum of absolute values of the products, s_i is i/K s plus a random bridge
// whose variance, for products of two uniform numbers, gives
//   sum of s_i^2 <= 2/3 K s^2 + 0.6 M^2 <= (M + sqrt(K) |s|)^2.
// The reference, a sum in doubles, errs as much again for f64 and not to speak of for the others.
// So the sum is allowed c u (M + sqrt(K) |s|), c = 8 (16 for f64). One lost tap of average size
// changes it by M/K, which exceeds that up to K of about 9e5 in f32.
//
// Padding is zeros that are multiplied: of a NaN or an infinity they make a NaN. So are, in a data
// gradient, the zeros around dy. What lies between two elements of dy there, because of a stride,
// is no factor of any product.
#include <algorithm>
#include <cmath>

#include "reference/element.hpp"
#include "reference/reference.hpp"

namespace kiln::reference {
namespace {

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

std::int64_t flipped(const ConvolutionProblem& problem, int axis, std::int64_t tap) {
  return problem.mode == KILN_CONVOLUTION ? problem.filter[axis] - 1 - tap : tap;
}

// Along one dimension, tap t of output o meets the input at place(o, t).
std::int64_t place(const ConvolutionProblem& problem, int axis, std::int64_t output,
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
constexpr std::int64_t padding = -1, none = -2;
std::int64_t output_at(const ConvolutionProblem& problem, int axis, std::int64_t input,
                       std::int64_t tap) {
  const std::int64_t numerator = input + problem.pad[axis] - tap * problem.dilation[axis];
  if (numerator % problem.stride[axis] != 0) return none;
  const std::int64_t output = numerator / problem.stride[axis];
  return output >= 0 && output < problem.out[axis] ? output : padding;
}

// Sums of one element type, that of the two tensors that are read; x, w and y stand for the
// gradients as well.
template <class T>
struct Convolution {
  const ConvolutionProblem& p;
  const T *x = nullptr, *w = nullptr, *y = nullptr;

  double x_at(std::int64_t n, std::int64_t c, const Spatial& at) const {
    const auto& s = p.x_strides;
    return to_double(x[n * s[0] + c * s[1] + at[0] * s[2] + at[1] * s[3] + at[2] * s[4]]);
  }
  bool inside_x(const Spatial& at) const {
    return at[0] >= 0 && at[0] < p.in[0] && at[1] >= 0 && at[1] < p.in[1] && at[2] >= 0 &&
           at[2] < p.in[2];
  }
  double w_at(std::int64_t k, std::int64_t c, const Spatial& tap) const {
    const auto& s = p.w_strides;
    return to_double(w[k * s[0] + c * s[1] + flipped(p, 0, tap[0]) * s[2] +
                       flipped(p, 1, tap[1]) * s[3] + flipped(p, 2, tap[2]) * s[4]]);
  }
  double y_at(std::int64_t n, std::int64_t k, const Spatial& at) const {
    const auto& s = p.y_strides;
    return to_double(y[n * s[0] + k * s[1] + at[0] * s[2] + at[1] * s[3] + at[2] * s[4]]);
  }

  Sum fprop(const Dims& at) const {
    const auto [n, k, o, pp, q] = at;
    const Taps depth(p, 0, o), height(p, 1, pp), width(p, 2, q);
    const std::int64_t first_channel = k / p.group_out() * p.group_in();
    Sum sum;
    for (std::int64_t c = 0; c < p.group_in(); ++c)
      for (std::int64_t t = 0; t < p.filter[0]; ++t)
        for (std::int64_t r = 0; r < p.filter[1]; ++r)
          for (std::int64_t s = 0; s < p.filter[2]; ++s) {
            const double weight = w_at(k, c, {t, r, s});
            if (depth.inside(t) && height.inside(r) && width.inside(s))
              sum.add(x_at(n, first_channel + c,
                           {place(p, 0, o, t), place(p, 1, pp, r), place(p, 2, q, s)}),
                      weight);
            else
              sum.add_padding(weight);
          }
    return sum;
  }

  Sum dgrad(const Dims& at) const {
    const auto [n, c, d, h, v] = at;
    const std::int64_t group = c / p.group_in();
    Sum sum;
    for (std::int64_t t = 0; t < p.filter[0]; ++t) {
      const std::int64_t o = output_at(p, 0, d, t);
      if (o == none) continue;
      for (std::int64_t r = 0; r < p.filter[1]; ++r) {
        const std::int64_t pp = output_at(p, 1, h, r);
        if (pp == none) continue;
        for (std::int64_t s = 0; s < p.filter[2]; ++s) {
          const std::int64_t q = output_at(p, 2, v, s);
          if (q == none) continue;
          const bool inside = o != padding && pp != padding && q != padding;
          for (std::int64_t k = group * p.group_out(); k < (group + 1) * p.group_out(); ++k) {
            const double weight = w_at(k, c % p.group_in(), {t, r, s});
            if (inside)
              sum.add(y_at(n, k, {o, pp, q}), weight);
            else
              sum.add_padding(weight);
          }
        }
      }
    }
    return sum;
  }

  Sum wgrad(const Dims& at) const {
    const auto [k, c, t, r, s] = at;
    const Spatial tap{flipped(p, 0, t), flipped(p, 1, r), flipped(p, 2, s)};
    const std::int64_t channel = k / p.group_out() * p.group_in() + c;
    Sum sum;
    for (std::int64_t n = 0; n < p.batch; ++n)
      for (std::int64_t o = 0; o < p.out[0]; ++o)
        for (std::int64_t pp = 0; pp < p.out[1]; ++pp)
          for (std::int64_t q = 0; q < p.out[2]; ++q) {
            const double gradient = y_at(n, k, {o, pp, q});
            const Spatial at_x{place(p, 0, o, tap[0]), place(p, 1, pp, tap[1]),
                               place(p, 2, q, tap[2])};
            if (inside_x(at_x))
              sum.add(gradient, x_at(n, channel, at_x));
            else
              sum.add_padding(gradient);
          }
    return sum;
  }

  Sum at(const Dims& index) const {
    switch (p.pass) {
      case ConvolutionPass::dgrad: return dgrad(index);
      case ConvolutionPass::wgrad: return wgrad(index);
      case ConvolutionPass::fprop: break;
    }
    return fprop(index);
  }
};

// The memory of a named operand; null if the problem has none of that name.
const void* memory_of(const std::vector<Operand>& operands, const Request& request,
                      std::string_view name) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].name == name) return request.operands[i];
  return nullptr;
}

// Without the products of padding. residual: what beta scales, scaled.
Expected finish_inside(const ConvolutionProblem& problem, const Scalars& scalars, const Sum& sum,
                       double residual, double bias) {
  const DataType computed = compute_type(problem.type());
  const double u = unit_roundoff(computed);
  const double c = problem.type() == KILN_DATA_DOUBLE ? 16 : 8;
  const double alpha = std::fabs(scalars.alpha), size = std::fabs(sum.value);
  const bool last = problem.epilogue.residual_last;
  const double before = last ? 0 : residual;
  const double added = std::fabs(before) + std::fabs(bias);
  Expected out;
  out.value = scalars.alpha * sum.value + before + bias;
  out.scale = alpha * sum.magnitude + added;
  out.allowed = alpha * c * u * (sum.magnitude + std::sqrt(terms_of_output(problem)) * size) +
                4 * u * (alpha * size + added);
  // Either factor may have lost all but 11 bits: of a subnormal one, all below 2^-136.
  if (problem.math == KILN_MATH_TF32)
    out.allowed += alpha * (0x1p-9 * sum.magnitude + 0x1p-136 * sum.factors);
  const Activation activation = in_type(problem.epilogue.activation, computed);
  if (activation.mode == KILN_ACTIVATION_IDENTITY) return out;
  // What the activation makes of the sum's error; its own is 8 roundoffs more.
  const double sum_error = out.allowed + u * std::fabs(out.value);
  const double value = within(computed, activate(activation, out.value));
  const auto apart = [&](double other) { return std::fabs(activate(activation, other) - value); };
  out.allowed = std::fmax(apart(out.value - sum_error), apart(out.value + sum_error)) +
                (8 * u + brief_error(problem.result_type())) * std::fabs(value) +
                8 * format_of(computed).smallest();
  out.value = value;
  if (!last) return out;
  out.value += residual;
  out.scale += std::fabs(residual);
  out.allowed += 2 * u * (std::fabs(value) + std::fabs(residual));
  return out;
}

Expected finish(const ConvolutionProblem& problem, const Scalars& scalars, const Sum& sum,
                double residual, double bias) {
  Expected out = finish_inside(problem, scalars, sum, residual, bias);
  if (!sum.padding_lost || std::isnan(out.value)) return out;
  out.without_padding = out.value;
  out.value = std::nan("");  // which every activation leaves a NaN
  return out;
}

}  // namespace

std::vector<Expected> expect(const ConvolutionProblem& problem, const Request& request) {
  const std::vector<Operand> operands = operands_of(problem);
  const Operand& result = operands.back();
  const void* const z =
      problem.epilogue.residual ? memory_of(operands, request, "z") : request.operands.back();
  const Dims& z_strides = problem.epilogue.residual ? problem.z_strides : result.strides;
  const void* const bias = memory_of(operands, request, "bias");

  std::vector<Expected> out(request.indices.size());
  with_element(problem.type(), [&](auto element) {
    using T = decltype(element);
    const auto typed = [&](std::string_view name, std::string_view gradient) {
      const void* found = memory_of(operands, request, name);
      return static_cast<const T*>(found ? found : memory_of(operands, request, gradient));
    };
    const Convolution<T> convolution{problem, typed("x", "dx"), typed("w", "dw"), typed("y", "dy")};
    parallel(static_cast<std::int64_t>(out.size()), request.threads, [&](std::int64_t i) {
      std::int64_t rest = request.indices[i];
      Dims at;
      std::int64_t z_offset = 0;
      for (int axis = operand_rank; axis-- > 0; rest /= result.dims[axis]) {
        at[axis] = rest % result.dims[axis];
        z_offset += at[axis] * z_strides[axis];
      }
      const double residual =
          request.scalars.beta == 0
              ? 0
              : request.scalars.beta * read_element(problem.result_type(), z, z_offset);
      const double added =
          bias == nullptr ? 0
                          : read_element(problem.result_type(), bias, at[1] * problem.bias_stride);
      out[i] = finish(problem, request.scalars, convolution.at(at), residual, added);
    });
  });
  return out;
}

double terms_of_output(const ConvolutionProblem& problem) {
  switch (problem.pass) {
    case ConvolutionPass::dgrad: return static_cast<double>(problem.group_out() * problem.taps());
    case ConvolutionPass::wgrad: return static_cast<double>(problem.batch * problem.out_pixels());
    case ConvolutionPass::fprop: break;
  }
  return static_cast<double>(problem.group_in() * problem.taps());
}

}  // namespace kiln::reference
