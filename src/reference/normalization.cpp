// Normalizations by the statistics of the batch by their definition, in extended precision;
// normalization_elements.hpp has the bounds. Sums over a channel err as those of reductions do
// (reduction.cpp), and by what their terms err.
#include <algorithm>
#include <cmath>

#include "reference/normalization_elements.hpp"
#include "reference/normalization_rows.hpp"

namespace kiln::reference {
namespace {

class Reference : NormalizationElements {
 public:
  using Real = NormalizationElements::Real;
  using Channel = NormalizationElements::Channel;

  Reference(const NormalizationProblem& problem, const Request& request)
      : NormalizationElements(problem, request) {
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
  // Calls body(index) for each element of a channel, of a tensor of x's sizes.
  template <class Body>
  void for_each(std::int64_t c, const Body& body) const {
    const std::int64_t space = p_.dims[2] * p_.dims[3] * p_.dims[4];
    for (std::int64_t n = 0; n < p_.dims[0]; ++n)
      for (std::int64_t i = 0; i < space; ++i) body((n * p_.dims[1] + c) * space + i);
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

  std::size_t summed_ = 0;  // the operand whose sums dscale and dbias are
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
  std::vector<Reference::Channel> channels(asked.size());
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
  if (problem.over != NormalizationOver::batch) return expect_rows(problem, request);
  const Reference reference(problem, request);
  std::vector<Expected> out(request.indices.size());
  with_channels(reference, request, [&](std::int64_t i, const Reference::Channel& channel) {
    out[i] = reference.of(request.indices[i], channel);
  });
  return out;
}

void take_gradient(const NormalizationProblem& problem, const Request& request,
                   std::vector<Expected>& gradients) {
  const Reference reference(problem, request);
  with_channels(reference, request, [&](std::int64_t i, const Reference::Channel& channel) {
    gradients[i] = reference.gradient_of(gradients[i], request.indices[i], channel);
  });
}

double terms_of_output(const NormalizationProblem& problem) {
  return problem.pass == NormalizationPass::inference
             ? 16
             : 16.0 + static_cast<double>(problem.count()) / 16;
}

}  // namespace kiln::reference
