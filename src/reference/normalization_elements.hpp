// Elements of normalizations by their definition, with what a kernel's may miss them by: what
// those of the batch (normalization.cpp) and others (normalization_rows.cpp) share.
//
// u is half the distance from 1 to the next number of the compute type, n the elements that share
// statistics and D the largest |x - mean| among them. A kernel subtracts one of the elements, of
// which the mean is at most D away, takes means of a few elements at a time and joins them in
// chains of at most n / 32 updates, whose roundings are independent of each other: errors grow as
// sqrt(n / 32) at most, and c = 8 + sqrt(n) / 4 has a margin for the additions inside and between
// chains.
//   mean      u |mean| + c u D                      one rounding of the sum with the shift
//   variance  c u (variance + D^2 / n) + 2 deviation c u D + (c u D)^2
//                                                   squares are around a mean that errs by c u D
// 1 / sqrt(variance + epsilon) is taken at both ends of the variance's range. From there on every
// operation's rounding is counted, and an activation and its slope are taken at both ends of the
// range of their argument, which covers the corner of a relu: an argument whose sign is uncertain
// gives either.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "reference/element.hpp"
#include "reference/reference.hpp"

namespace kiln::reference {

class NormalizationElements {
 public:
  using Real = long double;

  // A number and what a kernel's may miss it by.
  struct Near {
    Real value = 0, off = 0;
  };

  // What an element needs of its channel and of its statistics; n is of training, moments, combine.
  struct Channel {
    Near mean, variance, deviation;  // deviation: the inverse one
    Near scale, bias;
    Near dscale, dbias;
    Real n = 0;
  };

  NormalizationElements(const NormalizationProblem& problem, const Request& request)
      : p_(problem),
        request_(request),
        operands_(operands_of(problem)),
        activation_(in_type(problem.activation, problem.parameter_type())),
        u_(unit_roundoff(problem.parameter_type())),
        tiny_(format_of(problem.parameter_type()).smallest()) {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const std::string_view name = operands_[i].name;
      if (name == "x") x_ = i;
      if (name == "residual") residual_ = i;
      if (name == "dy") dy_ = i;
    }
  }

 protected:
  Real element(std::size_t operand, std::int64_t index) const {
    const Operand& o = operands_[operand];
    return read_element(o.type, request_.operands[operand], o.offset(index));
  }
  // A number of the channel; `without` if there are none.
  Real of_channel(std::string_view name, std::int64_t c, Real without) const {
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].name == name) return element(i, c);
    return without;
  }

  Real chains() const { return 8 + std::sqrt(static_cast<Real>(p_.count())) / 4; }

  Near inverse(const Near& variance) const {
    const Real epsilon = p_.epsilon;
    if (std::fabs(variance.value) > largest_of(p_.parameter_type())) return {0, 0};
    const auto at = [&](Real v) { return 1 / std::sqrt(v + epsilon); };
    const Real value = at(variance.value);
    const Real off = std::max(at(std::max<Real>(variance.value - variance.off, 0)) - value,
                              value - at(variance.value + variance.off));
    return {value, off + 4 * u_ * value};
  }

  // Those of a channel whose sums err by cu.
  void set_moments(Channel& out, Real mean, Real variance, Real furthest, Real cu) const {
    if (std::isnan(variance)) {
      out.mean = out.variance = out.deviation = {std::nan(""), 0};
      return;
    }
    out.mean = {mean, u_ * std::fabs(mean) + cu * furthest};
    out.variance = {variance, cu * (variance + furthest * furthest / std::max<Real>(out.n, 1)) +
                                  2 * std::sqrt(variance) * cu * furthest +
                                  cu * cu * furthest * furthest + tiny_};
    out.deviation = inverse(out.variance);
  }

  // p = (x - mean) * scale * deviation + bias + residual.
  Near before(std::int64_t i, const Channel& c) const {
    const Real d = element(x_, i) - c.mean.value, d_off = c.mean.off + u_ * std::fabs(d);
    const Real factor = c.scale.value * c.deviation.value;
    const Real factor_off = std::fabs(c.scale.value) * c.deviation.off + u_ * std::fabs(factor);
    const Real r = p_.residual ? element(residual_, i) : 0;
    const Real product = d * factor, p = product + c.bias.value + r;
    return {p, std::fabs(factor) * d_off + std::fabs(d) * factor_off + d_off * factor_off +
                   u_ * (std::fabs(product) + 2 * std::fabs(product + c.bias.value) + std::fabs(r) +
                         std::fabs(p)) +
                   tiny_};
  }

  // A function of p and what it may be near p.
  template <class Function>
  Near around(const Near& p, const Function& function) const {
    const Real value = function(p.value);
    if (p.off == 0 || !std::isfinite(p.value)) return {value, 0};
    Real off = 0;
    for (const Real at :
         {p.value - p.off, p.value - p.off / 2, p.value + p.off / 2, p.value + p.off})
      if (const Real other = function(at); !std::isnan(other))
        off = std::max(off, std::fabs(other - value));
    return {value, off};
  }

  Near y(std::int64_t i, const Channel& c) const {
    const Near p = before(i, c);
    if (activation_.mode == KILN_ACTIVATION_IDENTITY) return p;
    Near out = around(p, [&](Real at) -> Real {
      return within(p_.parameter_type(), activate(activation_, static_cast<double>(at)));
    });
    out.off += (10 * u_ + brief_error(p_.type)) * std::fabs(out.value) + 8 * tiny_;
    return out;
  }

  // A gradient stays as it is or becomes 0, whatever it is: a convolution's relu.
  bool passes_or_not() const {
    return p_.pass == NormalizationPass::gradient && activation_.mode == KILN_ACTIVATION_RELU;
  }

  Near gradient(std::int64_t i, const Channel& c) const {
    const Real dy = element(dy_, i);
    const Near slope = slope_at(i, c);
    if (passes_or_not() && slope.value == 0) return {0, slope.off * std::fabs(dy)};
    return {slope.value * dy, slope.off * std::fabs(dy) + u_ * std::fabs(slope.value * dy)};
  }

  // The activation's derivative.
  Near slope_at(std::int64_t i, const Channel& c) const {
    if (activation_.mode == KILN_ACTIVATION_IDENTITY) return {1, 0};
    const Near p = before(i, c);
    Near slope = around(p, [&](Real at) -> Real {
      if (passes_or_not()) return at <= 0 ? 0 : 1;
      return within(p_.parameter_type(), activation_gradient(activation_, static_cast<double>(at)));
    });
    if (is_piecewise_linear(activation_.mode)) {
      slope.off += 4 * u_ * std::fabs(slope.value);
    } else {
      const Real brief = 10 * u_ + brief_error(p_.type);
      // Functions of y's take an activation that errs, too.
      const Real size = gradient_from_output(activation_) || gradient_crosses_zero(activation_.mode)
                            ? 1 + std::fabs(slope.value)
                            : std::fabs(slope.value);
      slope.off += brief * size + 32 * u_ + 8 * tiny_;
    }
    return slope;
  }

  Expected expected(const Near& near) const {
    return {static_cast<double>(near.value), static_cast<double>(near.off),
            std::fabs(static_cast<double>(near.value)) + static_cast<double>(tiny_)};
  }

  const NormalizationProblem& p_;
  const Request& request_;
  std::vector<Operand> operands_;
  Activation activation_;
  Real u_, tiny_;
  std::size_t x_ = 0, residual_ = 0, dy_ = 0;
};

}  // namespace kiln::reference
