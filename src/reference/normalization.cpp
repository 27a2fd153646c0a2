// Normalizations by their definition, in extended precision.
//
// u is half the distance from 1 to the next number of the compute type, n the elements of a channel
// and D the largest |x - mean| among them. A kernel subtracts one element of the channel, of which
// the mean is at most D away, takes means of a few elements at a time and joins them in chains of
// at most n / 32 updates, whose roundings are independent of each other: errors grow as sqrt(n /
// 32) at most, and c = 8 + sqrt(n) / 4 has a margin for the additions inside and between chains.
//   mean      u |mean| + c u D                      one rounding of the sum with the shift
//   variance  c u (variance + D^2 / n) + 2 deviation c u D + (c u D)^2
//                                                   squares are around a mean that errs by c u D
// 1 / sqrt(variance + epsilon) is taken at both ends of the variance's range. From there on every
// operation's rounding is counted, and an activation and its slope are taken at both ends of the
// range of their argument, which covers the corner of a relu: an argument whose sign is uncertain
// gives either. Sums over a channel err as those of reductions do (reduction.cpp), and by what
// their terms err.
#include <algorithm>
#include <cmath>

#include "reference/element.hpp"
#include "reference/reference.hpp"

namespace kiln::reference {
namespace {

using Real = long double;

// A number and what a kernel's may miss it by.
struct Near {
  Real value = 0, off = 0;
};

// What a channel's elements share; n is of training, moments and combine.
struct Channel {
  Near mean, variance, deviation;  // deviation: the inverse one
  Near scale, bias;
  Near dscale, dbias;
  Real n = 0;
};

class Reference {
 public:
  Reference(const NormalizationProblem& problem, const Request& request)
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
    // The sums are those of what was stored.
    summed_ = p_.pass == NormalizationPass::gradient ? operands_.size() - 1 : dy_;
  }

  Channel channel(std::int64_t c) const {
    Channel out;
    out.scale = {of_channel("scale", c, 1), 0};
    out.bias = {of_channel("bias", c, 0), 0};
    switch (p_.pass) {
      case NormalizationPass::training: take_moments(out, c); break;
      case NormalizationPass::inference:
        out.mean = {of_channel("mean", c, 0), 0};
        out.variance = {of_channel("variance", c, 0), 0};
        out.deviation = inverse(out.variance);
        break;
      case NormalizationPass::moments: take_moments(out, c); break;
      case NormalizationPass::combine: combine(out, c); break;
      case NormalizationPass::apply:
        out.mean = {of_channel("mean", c, 0), 0};
        out.deviation = {of_channel("deviation", c, 0), 0};
        break;
      case NormalizationPass::backward:
        out.mean = {of_channel("mean", c, 0), 0};
        out.deviation = {of_channel("deviation", c, 0), 0};
        take_sums(out, c);
        break;
      case NormalizationPass::gradient:
        out.mean = {of_channel("mean", c, 0), 0};
        out.deviation = {of_channel("deviation", c, 0), 0};
        if (request_.result + 1 < operands_.size()) take_sums(out, c);
        break;
      case NormalizationPass::backward_apply:
        out.mean = {of_channel("mean", c, 0), 0};
        out.deviation = {of_channel("deviation", c, 0), 0};
        out.dscale = {of_channel("dscale", c, 0), 0};
        out.dbias = {of_channel("dbias", c, 0), 0};
        break;
    }
    return out;
  }

  Expected of(std::int64_t index, const Channel& channel) const {
    const Operand& result = operands_[request_.result];
    const std::string_view name = result.name;
    const Real factor = request_.scalars.alpha2;
    const auto updated = [&](const Near& value) {
      const Real old = element(request_.result, index), size = std::fabs(factor);
      return expected(
          {old + factor * (value.value - old),
           size * value.off +
               4 * u_ * (std::fabs(old) + size * std::fabs(value.value) + size * std::fabs(old))});
    };
    const Real n = channel.n;
    if (n < 2 && name.starts_with("running_"))  // it stays
      return expected({element(request_.result, index), 0});
    if (name == "running_mean") return updated(channel.mean);
    if (name == "running_variance") {
      const Real share = n / (n - 1);
      return updated({channel.variance.value * share,
                      channel.variance.off * share + 4 * u_ * channel.variance.value * share});
    }
    if (name == "mean") return expected(channel.mean);
    if (name == "deviation") return expected(channel.deviation);
    if (name == "moments") {
      const std::int64_t which = index / p_.dims[1];
      if (which == 0) return expected({n, (4 + std::sqrt(static_cast<Real>(p_.dims[0]))) * u_ * n});
      if (which == 1) return expected(channel.mean);
      return expected({channel.variance.value * n,
                       (channel.variance.off + 4 * u_ * channel.variance.value) * n});
    }
    if (name == "dscale") return expected(channel.dscale);
    if (name == "dbias") return expected(channel.dbias);
    if (name == "dresidual") return expected(gradient(index, channel));
    if (p_.pass == NormalizationPass::gradient) return expected(gradient(index, channel));
    const Near own = name == "dx" ? dx(index, channel) : y(index, channel);
    const Real alpha = request_.scalars.alpha, beta = request_.scalars.beta;
    const Real before = beta == 0 ? 0 : beta * element(request_.result, index);
    return expected(
        {alpha * own.value + before,
         std::fabs(alpha) * own.off + 4 * u_ * (std::fabs(alpha * own.value) + std::fabs(before))});
  }

  // What becomes of a gradient at element i that is to be `dy`, before it is rounded.
  Expected gradient_of(const Expected& dy, std::int64_t i, const Channel& c) const {
    const Near slope = slope_at(i, c);
    const double size = static_cast<double>(std::fabs(slope.value)),
                 off = static_cast<double>(slope.off);
    const Format format = format_of(p_.type);
    const auto times = [&](double value) {
      return passes_or_not() && slope.value == 0 ? 0 : static_cast<double>(slope.value) * value;
    };
    Expected out;
    out.value = times(dy.value);
    if (dy.without_padding) out.without_padding = times(*dy.without_padding);
    const double rounded = dy.allowed +
                           format.unit_roundoff() * (std::fabs(dy.value) + dy.allowed) +
                           format.smallest() / 2;
    out.allowed = size * rounded + off * (std::fabs(dy.value) + rounded) +
                  static_cast<double>(u_) * std::fabs(out.value);
    out.scale = std::max(size, off) * dy.scale + static_cast<double>(tiny_);
    return out;
  }

  // The channel of element `index` of the result.
  std::int64_t channel_of(std::int64_t index) const {
    const Dims& dims = operands_[request_.result].dims;  // moments: {3, C}
    return index / (dims[2] * dims[3] * dims[4]) % dims[1];
  }

 private:
  Real element(std::size_t operand, std::int64_t index) const {
    const Operand& o = operands_[operand];
    return read_element(o.type, request_.operands[operand], o.offset(index));
  }
  Real of_channel(std::string_view name, std::int64_t c, Real without) const {
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].name == name) return element(i, c);
    return without;
  }

  // Calls body(index) for each element of a channel, of a tensor of x's sizes.
  template <class Body>
  void for_each(std::int64_t c, const Body& body) const {
    const std::int64_t space = p_.dims[2] * p_.dims[3] * p_.dims[4];
    for (std::int64_t n = 0; n < p_.dims[0]; ++n)
      for (std::int64_t i = 0; i < space; ++i) body((n * p_.dims[1] + c) * space + i);
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

  void combine(Channel& out, std::int64_t c) const {
    const auto part = [&](std::int64_t i, std::int64_t which) {
      return element(0, (i * 3 + which) * p_.dims[1] + c);
    };
    Real n = 0, sum = 0, m2 = 0, furthest = 0;
    for (std::int64_t i = 0; i < p_.dims[0]; ++i) {
      n += part(i, 0);
      sum += part(i, 0) * part(i, 1);
    }
    out.n = n;
    const Real mean = n > 0 ? sum / n : 0;
    for (std::int64_t i = 0; i < p_.dims[0]; ++i) {
      if (part(i, 0) == 0) continue;
      const Real d = part(i, 1) - mean;
      m2 += part(i, 2) + part(i, 0) * d * d;
      furthest = std::max(furthest, std::fabs(d));
    }
    const Real variance = n > 0 ? m2 / n : 0,
               cu = (8 + std::sqrt(static_cast<Real>(p_.dims[0]))) * u_;
    set_moments(out, mean, variance, furthest, cu);
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

  void take_moments(Channel& out, std::int64_t c) const {
    const Real n = p_.count();
    out.n = n;
    if (n == 0) return;
    Real sum = 0, squares = 0, furthest = 0;
    for_each(c, [&](std::int64_t i) { sum += element(x_, i); });
    const Real mean = sum / n;
    for_each(c, [&](std::int64_t i) {
      const Real d = element(x_, i) - mean;
      squares += d * d;
      furthest = std::max(furthest, std::fabs(d));
    });
    set_moments(out, mean, squares / n, furthest, chains() * u_);
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

  void take_sums(Channel& out, std::int64_t c) const {
    Near sum, products;
    Real size = 0, product_size = 0;
    for_each(c, [&](std::int64_t i) {
      const Near g = summed_ == dy_ ? gradient(i, out) : Near{element(summed_, i), 0};
      const Real d = element(x_, i) - out.mean.value;
      sum.value += g.value, sum.off += g.off, size += std::fabs(g.value);
      products.value += g.value * d;
      products.off += std::fabs(d) * (g.off + u_ * std::fabs(g.value));
      product_size += std::fabs(g.value * d);
    });
    const Real order = (p_.type == KILN_DATA_DOUBLE ? 16 : 8) * u_,
               root = std::sqrt(static_cast<Real>(p_.count()));
    sum.off += order * (size + root * std::fabs(sum.value)) + tiny_;
    products.off += order * (product_size + root * std::fabs(products.value)) + tiny_;
    out.dbias = sum;
    const Real s = out.deviation.value;
    out.dscale = {products.value * s,
                  products.off * std::fabs(s) + u_ * std::fabs(products.value * s)};
  }

  Near dx(std::int64_t i, const Channel& c) const {
    const Near g = gradient(i, c);
    const Real n = p_.count(), s = c.deviation.value, factor = c.scale.value * s;
    if (p_.frozen)
      return {factor * g.value, std::fabs(factor) * g.off + 3 * u_ * std::fabs(factor * g.value)};
    const Real d = element(x_, i) - c.mean.value;
    const Real mean = c.dbias.value / n, along = d * s * c.dscale.value / n;
    const Real inner = g.value - mean - along;
    const Real off = g.off + c.dbias.off / n + std::fabs(d * s) * c.dscale.off / n +
                     6 * u_ * (std::fabs(g.value) + std::fabs(mean) + std::fabs(along));
    return {factor * inner, std::fabs(factor) * off + 3 * u_ * std::fabs(factor * inner)};
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
  std::size_t x_ = 0, residual_ = 0, dy_ = 0, summed_ = 0;
};

// Calls body(i, channel) for each element that is asked for, with what its channel has.
template <class Body>
void with_channels(const Reference& reference, const Request& request, const Body& body) {
  const std::size_t count = request.indices.size();
  std::vector<std::int64_t> channel_of(count);
  for (std::size_t i = 0; i < count; ++i) channel_of[i] = reference.channel_of(request.indices[i]);
  std::vector<std::int64_t> asked = channel_of;
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  std::vector<Channel> channels(asked.size());
  // Channels are long: each is a run of its own.
  parallel(
      static_cast<std::int64_t>(asked.size()), request.threads,
      [&](std::int64_t i) { channels[i] = reference.channel(asked[i]); }, 1);
  parallel(static_cast<std::int64_t>(count), request.threads, [&](std::int64_t i) {
    const auto at = std::lower_bound(asked.begin(), asked.end(), channel_of[i]) - asked.begin();
    body(i, channels[at]);
  });
}

}  // namespace

std::vector<Expected> expect(const NormalizationProblem& problem, const Request& request) {
  const Reference reference(problem, request);
  std::vector<Expected> out(request.indices.size());
  with_channels(reference, request, [&](std::int64_t i, const Channel& channel) {
    out[i] = reference.of(request.indices[i], channel);
  });
  return out;
}

void take_gradient(const NormalizationProblem& problem, const Request& request,
                   std::vector<Expected>& gradients) {
  const Reference reference(problem, request);
  with_channels(reference, request, [&](std::int64_t i, const Channel& channel) {
    gradients[i] = reference.gradient_of(gradients[i], request.indices[i], channel);
  });
}

double terms_of_output(const NormalizationProblem& problem) {
  return problem.pass == NormalizationPass::inference
             ? 16
             : 16.0 + static_cast<double>(problem.count()) / 16;
}

}  // namespace kiln::reference
