// Pointwise operations by their definition.
//
// A kernel rounds each of at most four products and sums: 4u of what is added up. Functions err by
// 8 u of their value beside that, and where a derivative crosses zero by 32 u.
#include <cmath>

#include "reference/element.hpp"
#include "reference/reference.hpp"

namespace kiln::reference {
namespace {

struct Term {
  double value, allowed, scale;
};

bool compare(PointwiseOp op, double a, double b) {
  switch (op) {
    case PointwiseOp::eq: return a == b;
    case PointwiseOp::ne: return a != b;
    case PointwiseOp::lt: return a < b;
    case PointwiseOp::le: return a <= b;
    case PointwiseOp::gt: return a > b;
    case PointwiseOp::ge: return a >= b;
    default: return false;
  }
}

// The result of an operation but for beta's term.
Term evaluate(const PointwiseProblem& p, const Scalars& s, const double (&in)[2], double u) {
  const double smallest = format_of(p.compute_type()).smallest() * 8;
  const auto rounded = [&](double value, double scale) {
    return Term{value, 4 * u * scale, scale};
  };
  switch (p.op) {
    case PointwiseOp::fill: return rounded(s.alpha, std::fabs(s.alpha));
    case PointwiseOp::copy: return rounded(s.alpha * in[0], std::fabs(s.alpha * in[0]));
    case PointwiseOp::activation: {
      const double value = s.alpha * within(p.compute_type(), activate(p.activation, in[0]));
      const double error = (10 * u + brief_error(p.output().type)) * std::fabs(value);
      return {value, error + std::fabs(s.alpha) * smallest, std::fabs(value)};
    }
    case PointwiseOp::activation_backward: {
      const kilnActivationMode_t mode = p.activation.mode;
      const double slope = gradient_from_output(p.activation)
                               ? activation_gradient_from_output(p.activation, in[0])
                               : activation_gradient(p.activation, in[0]);
      const double dy = s.alpha * in[1], value = within(p.compute_type(), slope) * dy;
      double error = (10 * u + brief_error(p.output().type)) * std::fabs(slope) + smallest;
      if (gradient_crosses_zero(mode) && std::fabs(in[0]) < 4) error += 32 * u;
      return {value, error * std::fabs(dy), std::fabs(value)};
    }
    case PointwiseOp::add: {
      const double a = s.alpha * in[0], b = s.alpha2 * in[1];
      return rounded(a + b, std::fabs(a) + std::fabs(b));
    }
    case PointwiseOp::sub: {
      const double a = s.alpha * in[0], b = s.alpha2 * in[1];
      return rounded(a - b, std::fabs(a) + std::fabs(b));
    }
    case PointwiseOp::div: {
      const double value = s.alpha * in[0] / (s.alpha2 * in[1]);
      return rounded(value, std::fabs(value));
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
    default: break;
  }
  // Comparisons, of what the products are rounded to.
  const auto product = [&](double scale, double x) {
    return p.compute_type() == KILN_DATA_FLOAT ? static_cast<float>(scale * x) : scale * x;
  };
  const double truth = compare(p.op, product(s.alpha, in[0]), product(s.alpha2, in[1])) ? 1 : 0;
  return {truth, 0, truth};
}

}  // namespace

std::vector<Expected> expect(const PointwiseProblem& given, const Request& request) {
  PointwiseProblem problem = given;
  const kilnActivationMode_t mode = problem.activation.mode;
  // A backward pass compares y with its bounds as y's type has them.
  const bool compares = problem.op == PointwiseOp::activation_backward &&
                        (mode == KILN_ACTIVATION_CLIPPED_RELU || mode == KILN_ACTIVATION_CLIP);
  problem.activation =
      in_type(problem.activation, compares ? problem.output().type : problem.compute_type());
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
