// The output of a convolution's sum, and the error that a kernel may have.
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
#include "reference/convolution_sum.hpp"

#include "reference/element.hpp"

namespace kiln::reference {
namespace {

// Without the products of padding. residual: what beta scales, scaled.
Expected finish_inside(const ConvolutionProblem& problem, const Scalars& scalars, const Sum& sum,
                       double terms, double residual, double bias) {
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
  out.allowed =
      alpha * c * u * (sum.magnitude + std::sqrt(terms) * size) + 4 * u * (alpha * size + added);
  // Either factor may have lost all but 11 bits: of a subnormal one, all below 2^-136.
  if (problem.math == KILN_MATH_TF32)
    out.allowed += alpha * (0x1p-9 * sum.magnitude + 0x1p-136 * sum.factors);
  const Activation activation = in_type(problem.epilogue.activation, computed);
  if (activation.mode == KILN_ACTIVATION_IDENTITY) return out;
  // The sum's error after the activation, which adds 8 roundoffs of its own.
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

}  // namespace

const void* memory_of(const std::vector<Operand>& operands, const Request& request,
                      std::string_view name) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].name == name) return request.operands[i];
  return nullptr;
}

Expected finish(const ConvolutionProblem& problem, const Scalars& scalars, const Sum& sum,
                double terms, double residual, double bias) {
  Expected out = finish_inside(problem, scalars, sum, terms, residual, bias);
  if (!sum.padding_lost || std::isnan(out.value)) return out;
  out.without_padding = out.value;
  out.value = std::nan("");  // which every activation leaves a NaN
  return out;
}

}  // namespace kiln::reference
