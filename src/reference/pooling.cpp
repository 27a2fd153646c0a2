// Pooling by its definition.
//
// A maximum is exact. An average of n taps errs by 8 u (M + sqrt(n) |s|) / divisor, as
// convolution.cpp derives it for random errors; so does a gradient, a sum over windows.
#include <algorithm>
#include <cmath>

#include "reference/reference.hpp"

namespace kiln::reference {
namespace {

struct Pooled {
  double value = 0, magnitude = 0;
};

class Pooling {
 public:
  Pooling(const PoolingProblem& problem, const void* x, const void* dy)
      : p_(problem), x_(x), dy_(dy) {}

  Pooled forward(std::int64_t n, std::int64_t c, const Spatial& out) const {
    if (p_.mode == KILN_POOLING_MAX) {
      Spatial place;
      if (!find_maximum(n, c, out, place)) return {-HUGE_VAL, 0};
      const double value = x_at(n, c, place);
      return {value, std::fabs(value)};
    }
    Pooled sum;
    for_taps(out, [&](const Spatial& place) {
      const double x = x_at(n, c, place);
      sum.value += x;
      sum.magnitude += std::fabs(x);
    });
    const double divisor = divisor_of(out);
    return divisor == 0 ? Pooled{} : Pooled{sum.value / divisor, sum.magnitude / divisor};
  }

  // Of the element of dx at `in`: the windows that hold it.
  Pooled backward(std::int64_t n, std::int64_t c, const Spatial& in) const {
    Pooled sum;
    Spatial first, last;  // outputs whose window may hold it
    for (int i = 0; i < 3; ++i) {
      const std::int64_t reach = (p_.window[i] - 1) * p_.dilation[i];
      const std::int64_t low = in[i] + p_.pad[i] - reach;
      first[i] = low <= 0 ? 0 : (low + p_.stride[i] - 1) / p_.stride[i];
      const std::int64_t high = in[i] + p_.pad[i];
      last[i] = high < 0 ? -1 : std::min(p_.out[i] - 1, high / p_.stride[i]);
    }
    Spatial out;
    for (out[0] = first[0]; out[0] <= last[0]; ++out[0])
      for (out[1] = first[1]; out[1] <= last[1]; ++out[1])
        for (out[2] = first[2]; out[2] <= last[2]; ++out[2]) {
          bool holds = true;
          for (int i = 0; i < 3; ++i)
            holds = holds && (in[i] + p_.pad[i] - out[i] * p_.stride[i]) % p_.dilation[i] == 0;
          if (!holds) continue;
          double share = 1;
          if (p_.mode == KILN_POOLING_MAX) {
            Spatial place;
            if (!find_maximum(n, c, out, place) || place != in) continue;
          } else {
            share = 1 / divisor_of(out);
          }
          const double term = share * dy_at(n, c, out);
          sum.value += term;
          sum.magnitude += std::fabs(term);
        }
    return sum;
  }

 private:
  double x_at(std::int64_t n, std::int64_t c, const Spatial& at) const {
    const Dims& s = p_.x_strides;
    return read_element(p_.type, x_,
                        n * s[0] + c * s[1] + at[0] * s[2] + at[1] * s[3] + at[2] * s[4]);
  }
  double dy_at(std::int64_t n, std::int64_t c, const Spatial& at) const {
    const Dims& s = p_.y_strides;
    return read_element(p_.type, dy_,
                        n * s[0] + c * s[1] + at[0] * s[2] + at[1] * s[3] + at[2] * s[4]);
  }

  // Calls body with the place of every tap of a window that lies in x, in order.
  template <class Body>
  void for_taps(const Spatial& out, const Body& body) const {
    Spatial tap, place;
    const auto inside = [&](int i) {
      place[i] = out[i] * p_.stride[i] - p_.pad[i] + tap[i] * p_.dilation[i];
      return place[i] >= 0 && place[i] < p_.in[i];
    };
    for (tap[0] = 0; tap[0] < p_.window[0]; ++tap[0])
      for (tap[1] = 0; tap[1] < p_.window[1]; ++tap[1])
        for (tap[2] = 0; tap[2] < p_.window[2]; ++tap[2])
          if (inside(0) && inside(1) && inside(2)) body(place);
  }

  // The taps of a window along a dimension that lie in x and its padding, the overhang left out.
  double counted_taps(const Spatial& out, int i) const {
    double count = 0;
    for (std::int64_t tap = 0; tap < p_.window[i]; ++tap)
      if (out[i] * p_.stride[i] - p_.pad[i] + tap * p_.dilation[i] < p_.end(i) - p_.overhang[i])
        ++count;
    return count;
  }

  double divisor_of(const Spatial& out) const {
    if (p_.mode == KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING)
      return counted_taps(out, 0) * counted_taps(out, 1) * counted_taps(out, 2);
    double count = 0;
    for_taps(out, [&](const Spatial&) { ++count; });
    return count;
  }

  // The first maximal tap of a window; the first NaN if those propagate. False: no tap counts.
  bool find_maximum(std::int64_t n, std::int64_t c, const Spatial& out, Spatial& place) const {
    double best = 0;
    bool found = false;
    for_taps(out, [&](const Spatial& at) {
      const double x = x_at(n, c, at);
      if (std::isnan(x) && p_.nan == KILN_NOT_PROPAGATE_NAN) return;
      const bool better = !found || x > best || (std::isnan(x) && !std::isnan(best));
      if (!better || (found && std::isnan(best))) return;
      best = x;
      place = at;
      found = true;
    });
    return found;
  }

  const PoolingProblem& p_;
  const void* x_;
  const void* dy_;
};

}  // namespace

std::vector<Expected> expect(const PoolingProblem& problem, const Request& request) {
  const double u = unit_roundoff(compute_type(problem.type));
  const double c = problem.type == KILN_DATA_DOUBLE ? 16 : 8;
  const double terms = terms_of_output(problem);
  const bool max = problem.mode == KILN_POOLING_MAX;
  const Pooling pooling(problem, request.operands[problem.backward && max ? 1 : 0],
                        request.operands[0]);
  const Operand result = operands_of(problem).back();
  std::vector<Expected> out(request.indices.size());
  parallel(static_cast<std::int64_t>(out.size()), request.threads, [&](std::int64_t i) {
    std::int64_t rest = request.indices[i];
    Dims at;
    for (int axis = operand_rank; axis-- > 0; rest /= result.dims[axis])
      at[axis] = rest % result.dims[axis];
    const Spatial place{at[2], at[3], at[4]};
    const Pooled pooled = problem.backward ? pooling.backward(at[0], at[1], place)
                                           : pooling.forward(at[0], at[1], place);
    const double alpha = request.scalars.alpha, beta = request.scalars.beta;
    const double before = beta == 0 ? 0
                                    : beta * read_element(problem.type, request.operands.back(),
                                                          result.offset(request.indices[i]));
    const double size = std::fabs(alpha) * pooled.magnitude + std::fabs(before);
    const bool exact = max && !problem.backward;
    const double sum = exact ? 0
                             : std::fabs(alpha) * c * u *
                                   (pooled.magnitude + std::sqrt(terms) * std::fabs(pooled.value));
    out[i] = {alpha * pooled.value + before, sum + 4 * u * size, size};
  });
  return out;
}

double terms_of_output(const PoolingProblem& p) {
  const auto window = static_cast<double>(p.window[0] * p.window[1] * p.window[2]);
  return p.backward && p.mode == KILN_POOLING_MAX ? window * window : window;
}

}  // namespace kiln::reference
