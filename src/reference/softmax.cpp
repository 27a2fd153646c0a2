// Softmax and its gradient by their definitions, the maximum subtracted.
//
// u is half the distance from 1 to the next number of the compute type; n the length of a row.
// Forward, d = x - maximum is rounded by u |d|, and so is what exp makes of it, to (3 + |d|) u of
// itself; FAST, whose exponent is rounded again when it is taken to base 2 and whose exp has two
// bits less, to 4 times that. In the sum those errors are weighted by exp(d), and the mean of |d|
// under that weight is below log n; adding n positive terms up errs by sqrt(n) u at random. Kernels
// that scale the sum each time they meet a larger maximum multiply by as many exps as they met
// maxima, some log n of them. So of a sum, relatively: (16 + sqrt(n)) u, where 16 exceeds log n;
// and of a quotient: that and 4 (1 + |d|) u. The logarithm of the sum errs by what the sum errs
// relatively, and d by u |d|. An exp below the smallest normal number may be lost altogether.
//
// Backward, the sum of n terms whose absolute values add up to M errs by (16 + sqrt(n)) u M at
// random, and what is multiplied with it or added to it, by a few u of itself.
#include <algorithm>
#include <cmath>

#include "reference/reference.hpp"

namespace kiln::reference {
namespace {

// The tensors cut into rows: those axes that a row runs along, and those that tell rows apart.
struct Rows {
  const SoftmaxProblem& p;
  Dims along = p.dims, apart = p.dims;

  explicit Rows(const SoftmaxProblem& problem) : p(problem) {
    for (int i = 0; i < operand_rank; ++i) {
      const bool in_row = i == 1 || (i > 1 && p.mode == KILN_SOFTMAX_MODE_INSTANCE);
      (in_row ? apart : along)[i] = 1;
    }
  }
  std::int64_t length() const { return Operand{"", p.type, along, {}}.count(); }
  // The number of the row that an element belongs to.
  std::int64_t of(std::int64_t element) const {
    Dims at;
    for (int i = operand_rank; i-- > 0; element /= p.dims[i]) at[i] = element % p.dims[i];
    std::int64_t row = 0;
    for (int i = 0; i < operand_rank; ++i) row = row * apart[i] + at[i] % apart[i];
    return row;
  }
};

// One tensor's elements, by row and place in it, or by their number.
struct Elements {
  const Operand& operand;
  const void* memory;
  Operand rows, row;

  Elements(const Rows& cut, const Operand& of, const void* at)
      : operand(of), memory(at), rows(of), row(of) {
    rows.dims = cut.apart;
    row.dims = cut.along;
  }
  double operator()(std::int64_t number, std::int64_t place) const {
    return read_element(operand.type, memory, rows.offset(number) + row.offset(place));
  }
  double operator()(std::int64_t element) const {
    return read_element(operand.type, memory, operand.offset(element));
  }
};

// What a row's elements share; forward the maximum and the sum of exp(x - maximum), backward the
// sum of y * dy, or of dy, and of its terms' absolute values.
struct Totals {
  double maximum = -HUGE_VAL, sum = 0, magnitude = 0;
};

Totals forward_totals(const Elements& x, std::int64_t row, std::int64_t length) {
  Totals out;
  for (std::int64_t i = 0; i < length; ++i) out.maximum = std::fmax(out.maximum, x(row, i));
  for (std::int64_t i = 0; i < length; ++i) out.sum += std::exp(x(row, i) - out.maximum);
  return out;
}

Totals backward_totals(const Elements& y, const Elements& dy, bool log, std::int64_t row,
                       std::int64_t length) {
  Totals out;
  for (std::int64_t i = 0; i < length; ++i) {
    const double term = log ? dy(row, i) : y(row, i) * dy(row, i);
    out.sum += term;
    out.magnitude += std::fabs(term);
  }
  return out;
}

}  // namespace

std::vector<Expected> expect(const SoftmaxProblem& p, const Request& request) {
  const Rows rows(p);
  const std::vector<Operand> operands = operands_of(p);
  const Elements first(rows, operands[0], request.operands[0]);
  const Elements second(rows, operands[1], request.operands[1]);
  const Elements result(rows, operands.back(), request.operands.back());
  const std::int64_t length = rows.length();
  const bool log = p.algorithm == KILN_SOFTMAX_LOG;

  // Every row that is asked for, once.
  const std::size_t count = request.indices.size();
  std::vector<std::int64_t> row_of(count);
  for (std::size_t i = 0; i < count; ++i) row_of[i] = rows.of(request.indices[i]);
  std::vector<std::int64_t> asked = row_of;
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  std::vector<Totals> totals(asked.size());
  parallel(static_cast<std::int64_t>(asked.size()), request.threads, [&](std::int64_t i) {
    totals[i] = p.backward ? backward_totals(first, second, log, asked[i], length)
                           : forward_totals(first, asked[i], length);
  });

  const double u = unit_roundoff(compute_type(p.type));
  const double lost = p.type == KILN_DATA_DOUBLE ? 0x1p-1000 : 0x1p-120;
  const double fast = p.algorithm == KILN_SOFTMAX_FAST ? 4 : 1;
  const double of_sum = fast * (16 + std::sqrt(static_cast<double>(length))) * u;  // relatively
  std::vector<Expected> out(count);
  parallel(static_cast<std::int64_t>(count), request.threads, [&](std::int64_t i) {
    const std::int64_t element = request.indices[i];
    const Totals& row =
        totals[std::lower_bound(asked.begin(), asked.end(), row_of[i]) - asked.begin()];
    double value, allowed;
    if (p.backward) {
      const double y = first(element), dy = second(element);
      const double factor = log ? std::exp(y) : y, term = log ? dy : y * dy;
      const double of_exp = log ? (4 + 2 * std::fabs(y)) * std::fabs(row.sum) * u : 0;
      value = term - factor * row.sum;
      allowed = std::fabs(factor) * (of_sum * row.magnitude + of_exp) +
                4 * u * (std::fabs(term) + std::fabs(factor * row.sum));
    } else {
      const double d = first(element) - row.maximum;
      if (log) {
        value = d - std::log(row.sum);
        allowed = of_sum + 4 * u * (std::fabs(d) + std::fabs(value));
      } else {
        value = std::exp(d) / row.sum;
        allowed = value == 0 ? 0 : value * (of_sum + fast * 4 * (1 + std::fabs(d)) * u);
      }
      allowed += lost;
    }
    const double alpha = request.scalars.alpha, beta = request.scalars.beta;
    const double before = beta == 0 ? 0 : beta * result(element);
    const double scale = std::fabs(alpha * value) + std::fabs(before);
    out[i] = {alpha * value + before, std::fabs(alpha) * allowed + 4 * u * scale, scale};
  });
  return out;
}

double terms_of_output(const SoftmaxProblem& p) { return static_cast<double>(Rows(p).length()); }

}  // namespace kiln::reference
