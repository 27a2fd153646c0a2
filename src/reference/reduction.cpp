// Reductions by their definition.
//
// u is half the distance from 1 to the next number of the compute type. Each addition rounds its
// result by at most u of it; of n terms whose absolute values add up to M, and whose partial sums
// stay below M, errors that are independent of each other add up to some sqrt(n) u of the partial
// sums' usual size, which for terms of one sign is the sum s itself and otherwise near M / sqrt(n):
// 8 u (M + sqrt(n) |s|) in whatever order, with a wide margin for one that sums in many short
// chains. In f64, where this reference errs as much as a kernel, twice that. A mean divides both; a
// norm's root halves the relative error of the sum of squares, which are all of one sign; a product
// of n errs by n roundoffs at most. Maxima and minima are exact.
//
// Squares are added up, and products multiplied, in extended precision, whose range none of f64's
// leaves.
#include <cmath>

#include "reference/element.hpp"
#include "reference/reference.hpp"

namespace kiln::reference {
namespace {

struct Reduced {
  double value = 0, magnitude = 0;
};

bool is_extreme(kilnReduceTensorOp_t op) {
  return op == KILN_REDUCE_MAX || op == KILN_REDUCE_MIN || op == KILN_REDUCE_AMAX;
}

Reduced reduce(const ReductionProblem& p, const void* a, std::int64_t base) {
  Operand row{"", p.type, p.dims, p.a_strides};
  for (int i = 0; i < operand_rank; ++i)
    if (p.out_dims[i] != 1) row.dims[i] = 1;
  const std::int64_t count = row.count();
  Reduced out;
  long double squares = 0, product = 1;
  if (p.op == KILN_REDUCE_MAX) out.value = -HUGE_VAL;
  if (p.op == KILN_REDUCE_MIN) out.value = HUGE_VAL;
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = read_element(p.type, a, base + row.offset(i));
    switch (p.op) {
      case KILN_REDUCE_SUM:
      case KILN_REDUCE_MEAN:
        out.value += x;
        out.magnitude += std::fabs(x);
        break;
      case KILN_REDUCE_NORM1:
        out.value += std::fabs(x);
        out.magnitude += std::fabs(x);
        break;
      case KILN_REDUCE_NORM2: squares += static_cast<long double>(x) * x; break;
      case KILN_REDUCE_MUL: product *= x; break;
      case KILN_REDUCE_AMAX:
        out.value = std::fabs(x) > out.value || std::isnan(x) ? std::fabs(x) : out.value;
        break;
      case KILN_REDUCE_MAX: out.value = x > out.value || std::isnan(x) ? x : out.value; break;
      case KILN_REDUCE_MIN: out.value = x < out.value || std::isnan(x) ? x : out.value; break;
    }
    if (is_extreme(p.op) && std::isnan(out.value)) break;
  }
  if (p.op == KILN_REDUCE_MEAN) {
    out.value /= static_cast<double>(count);
    out.magnitude /= static_cast<double>(count);
  }
  if (p.op == KILN_REDUCE_NORM2)
    out.value = out.magnitude = static_cast<double>(std::sqrt(squares));
  if (p.op == KILN_REDUCE_MUL) {
    out.value = static_cast<double>(product);
    out.magnitude = std::sqrt(static_cast<double>(count)) * std::fabs(out.value);
  }
  if (is_extreme(p.op)) out.magnitude = std::fabs(out.value);
  return out;
}

}  // namespace

std::vector<Expected> expect(const ReductionProblem& problem, const Request& request) {
  const double u = unit_roundoff(compute_type(problem.type));
  const double c = problem.type == KILN_DATA_DOUBLE ? 16 : 8;
  const double terms = terms_of_output(problem);
  const std::vector<Operand> operands = operands_of(problem);
  Operand kept = operands[0];
  kept.dims = problem.out_dims;
  std::vector<Expected> out(request.indices.size());
  parallel(static_cast<std::int64_t>(out.size()), request.threads, [&](std::int64_t i) {
    const std::int64_t index = request.indices[i];
    const Reduced row = reduce(problem, request.operands[0], kept.offset(index));
    const double alpha = request.scalars.alpha, beta = request.scalars.beta;
    const double before = beta == 0 ? 0
                                    : beta * read_element(problem.type, request.operands[1],
                                                          operands[1].offset(index));
    const double size = std::fabs(alpha) * row.magnitude + std::fabs(before);
    const double sum =
        is_extreme(problem.op)
            ? 0
            : std::fabs(alpha) * c * u * (row.magnitude + std::sqrt(terms) * std::fabs(row.value));
    // A product may be rounded as a subnormal number on the way.
    const double lost =
        problem.op == KILN_REDUCE_MUL
            ? std::fabs(alpha) * terms * format_of(compute_type(problem.type)).smallest()
            : 0;
    out[i] = {alpha * row.value + before, sum + lost + 4 * u * size, size};
  });
  return out;
}

double terms_of_output(const ReductionProblem& problem) {
  return static_cast<double>(std::max<std::int64_t>(problem.reduced(), 1));
}

}  // namespace kiln::reference
