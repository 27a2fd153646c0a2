// Pointwise operations by their definition.
//
// A kernel rounds each of at most four products and sums: 4u of what is added up. Functions err by
// some 16 u of their value beside that; where the argument is itself rounded, the function's own
// condition multiplies that error: t exp'(t) / exp(t) = t for gelu's inner terms.
#include <cmath>

#include "reference/reference.hpp"

namespace kiln::reference {
namespace {

struct Term {
  double value, allowed, scale;
};

double condition(const Activation& activation, double x) {
  switch (activation.mode) {
    case KILN_ACTIVATION_GELU_ERF: return 16 + 4 * x * x;
    case KILN_ACTIVATION_GELU_TANH: return 16 + 16 * std::fabs(x) * (1 + 0.05 * x * x);
    default: return 16;
  }
}

// The result of an operation but for beta's term.
Term evaluate(const PointwiseProblem& p, const Scalars& s, const double (&in)[2], double u) {
  const auto rounded = [&](double value, double scale) {
    return Term{value, 4 * u * scale, scale};
  };
  switch (p.op) {
    case PointwiseOp::fill: return rounded(s.alpha, std::fabs(s.alpha));
    case PointwiseOp::copy: return rounded(s.alpha * in[0], std::fabs(s.alpha * in[0]));
    case PointwiseOp::activation: {
      const double f = activate(p.activation, in[0]), value = s.alpha * f;
      const double error =
          (condition(p.activation, in[0]) * u + brief_error(p.output().type)) * std::fabs(value);
      return {value, error + std::fabs(s.alpha) * 0x1p-120, std::fabs(value)};
    }
    case PointwiseOp::activation_backward: {
      const double slope = gradient_from_output(p.activation)
                               ? activation_gradient_from_output(p.activation, in[0])
                               : activation_gradient(p.activation, in[0]);
      const double dy = s.alpha * in[1], value = slope * dy;
      // Slopes are sums of terms of size 1, or of the coefficient.
      const double size = std::fabs(slope) + 1.2 + p.activation.coefficient;
      const double error = condition(p.activation, std::fmin(std::fabs(in[0]), 6)) * u;
      return {value, (error + brief_error(p.output().type)) * size * std::fabs(dy),
              std::fabs(dy) * size};
    }
    case PointwiseOp::add: {
      const double a = s.alpha * in[0], b = s.alpha2 * in[1];
      return rounded(a + b, std::fabs(a) + std::fabs(b));
    }
    case PointwiseOp::mul: {
      const double value = s.alpha * in[0] * (s.alpha2 * in[1]);
      return rounded(value, std::fabs(value));
    }
    case PointwiseOp::min:
    case PointwiseOp::max: {
      const double a = s.alpha * in[0], b = s.alpha2 * in[1];
      if (std::isnan(a) || std::isnan(b)) return {std::nan(""), 0, 0};
      const double value = p.op == PointwiseOp::min ? std::fmin(a, b) : std::fmax(a, b);
      return rounded(value, std::fabs(value));
    }
  }
  return {std::nan(""), 0, 0};
}

}  // namespace

std::vector<Expected> expect(const PointwiseProblem& problem, const Request& request) {
  const double u = unit_roundoff(problem.compute_type());
  std::vector<Expected> out(request.indices.size());
  const Operand places{"", KILN_DATA_FLOAT, problem.dims, problem.output().strides};
  parallel(static_cast<std::int64_t>(out.size()), request.threads, [&](std::int64_t i) {
    const auto element = [&](std::size_t view) {
      Operand at = places;
      at.strides = problem.views[view].strides;
      return read_element(problem.views[view].type, request.operands[view],
                          at.offset(request.indices[i]));
    };
    double in[2] = {0, 0};
    for (std::size_t view = 0; view < problem.inputs(); ++view) in[view] = element(view);
    const Term term = evaluate(problem, request.scalars, in, u);
    const double beta = request.scalars.beta;
    const double before = beta == 0 ? 0 : beta * element(problem.inputs());
    const double scale = term.scale + std::fabs(before);
    out[i] = {term.value + before, term.allowed + 4 * u * (beta == 0 ? 0 : scale), scale};
  });
  return out;
}

double terms_of_output(const PointwiseProblem&) { return 8; }

}  // namespace kiln::reference
