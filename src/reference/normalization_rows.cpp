// Normalizations by the statistics of groups and pixels by their definition, in extended precision;
// normalization_elements.hpp has the bounds of statistics and elements. A row is the elements that
// share a mean and a deviation. A row's sums of h = scale * g, and a channel's of g, err as
// reductions do (reduction.cpp), and by what their terms err. A sum of squares around 0 has
// positive terms: it errs by c u of itself.
#include "reference/normalization_rows.hpp"

#include <algorithm>
#include <cmath>

#include "reference/normalization_elements.hpp"

namespace kiln::reference {
namespace {

class RowsReference : NormalizationElements {
 public:
  using NormalizationElements::Channel;

  // What a row has, or a channel: which one, says the result.
  struct Row {
    Near mean, deviation;
    Near sum, products;  // of h, of h (x - mean); of a channel of g, of g (x - mean) s
  };

  RowsReference(const NormalizationProblem& problem, const Request& request)
      : NormalizationElements(problem, request),
        space_(problem.space()),
        channels_(problem.dims[1]),
        name_(operands_[request.result].name) {}

  // The row, or the channel, that element `index` of the result needs.
  std::int64_t row_of_result(std::int64_t index) const {
    const bool is_dense = name_ == "mean" || name_ == "deviation" || of_channels();
    return is_dense ? index : row_of(index);
  }

  Row row(std::int64_t number) const {
    if (of_channels()) return channel_sums(number);
    Row out = p_.pass == NormalizationPass::training ? moments(number) : given(number);
    if (name_ == "dx") add_sums(out, number);
    return out;
  }

  Expected of(std::int64_t index, const Row& row) const {
    if (name_ == "mean") return expected(row.mean);
    if (name_ == "deviation") return expected(row.deviation);
    if (name_ == "dscale") return expected(row.products);
    if (name_ == "dbias") return expected(row.sum);
    const Channel c = channel(index, row);
    if (name_ == "dresidual") return expected(gradient(index, c));
    const Near own = name_ == "dx" ? dx(index, c, row) : y(index, c);
    const Real alpha = request_.scalars.alpha, beta = request_.scalars.beta;
    const Real before = beta == 0 ? 0 : beta * element(request_.result, index);
    return expected(
        {alpha * own.value + before,
         std::fabs(alpha) * own.off + 4 * u_ * (std::fabs(alpha * own.value) + std::fabs(before))});
  }

 private:
  bool of_channels() const { return name_ == "dscale" || name_ == "dbias"; }
  std::int64_t channel_of(std::int64_t index) const { return index / space_ % channels_; }
  std::int64_t row_of(std::int64_t index) const {
    const std::int64_t image = index / (space_ * channels_);
    if (p_.over == NormalizationOver::pixel) return image * space_ + index % space_;
    return image * p_.groups + channel_of(index) / (channels_ / p_.groups);
  }
  // Calls body(index) for each element of a row, an index into tensors of x's sizes.
  template <class Body>
  void for_each(std::int64_t row, const Body& body) const {
    if (p_.over == NormalizationOver::pixel) {
      const std::int64_t first = row / space_ * channels_ * space_ + row % space_;
      for (std::int64_t c = 0; c < channels_; ++c) body(first + c * space_);
    } else {  // groups of all images are one after another
      for (std::int64_t i = 0; i < p_.count(); ++i) body(row * p_.count() + i);
    }
  }

  Channel channel(std::int64_t index, const Row& row) const {
    const std::int64_t c = channel_of(index);
    Channel out;
    out.mean = row.mean;
    out.deviation = row.deviation;
    out.scale = {of_channel("scale", c, 1), 0};
    out.bias = {of_channel("bias", c, 0), 0};
    return out;
  }

  Row moments(std::int64_t number) const {
    const Real n = p_.count();
    Real sum = 0, squares = 0, furthest = 0;
    for_each(number, [&](std::int64_t i) { sum += element(x_, i); });
    const Real mean = p_.centered ? sum / n : 0;
    for_each(number, [&](std::int64_t i) {
      const Real d = element(x_, i) - mean;
      squares += d * d;
      furthest = std::max(furthest, std::fabs(d));
    });
    Channel out;
    out.n = n;
    set_moments(out, mean, squares / n, p_.centered ? furthest : 0, chains() * u_);
    return {out.mean, out.deviation, {}, {}};
  }

  Row given(std::int64_t number) const {
    return {{of_channel("mean", number, 0), 0}, {of_channel("deviation", number, 1), 0}, {}, {}};
  }

  // Adds up what add(term) gives of a sum's terms and of their errors.
  class Sum {
   public:
    void add(Real term, Real off) {
      value_ += term;
      off_ += off;
      size_ += std::fabs(term);
    }
    Near get(Real order, Real count, Real tiny) const {
      return {value_, off_ + order * (size_ + std::sqrt(count) * std::fabs(value_)) + tiny};
    }

   private:
    Real value_ = 0, off_ = 0, size_ = 0;
  };
  Real order() const { return (p_.type == KILN_DATA_DOUBLE ? 16 : 8) * u_; }

  void add_sums(Row& row, std::int64_t number) const {
    Sum sum, products;
    for_each(number, [&](std::int64_t i) {
      const Channel c = channel(i, row);
      const Near g = gradient(i, c);
      const Real scale = std::fabs(c.scale.value), h = g.value * c.scale.value;
      const Real off = g.off * scale + u_ * std::fabs(h), d = element(x_, i) - row.mean.value;
      sum.add(h, off);
      products.add(h * d, std::fabs(d) * (off + u_ * std::fabs(h)));
    });
    row.sum = sum.get(order(), p_.count(), tiny_);
    row.products = products.get(order(), p_.count(), tiny_);
  }

  Row channel_sums(std::int64_t c) const {
    Sum sum, products;
    for (std::int64_t n = 0; n < p_.dims[0]; ++n)
      for (std::int64_t place = 0; place < space_; ++place) {
        const std::int64_t i = (n * channels_ + c) * space_ + place;
        const Row row = given(row_of(i));
        const Near g = gradient(i, channel(i, row));
        const Real d = (element(x_, i) - row.mean.value) * row.deviation.value;
        sum.add(g.value, g.off);
        products.add(g.value * d, std::fabs(d) * (g.off + 3 * u_ * std::fabs(g.value)));
      }
    const Real count = p_.dims[0] * space_;
    return {{}, {}, sum.get(order(), count, tiny_), products.get(order(), count, tiny_)};
  }

  Near dx(std::int64_t i, const Channel& c, const Row& row) const {
    const Near g = gradient(i, c);
    const Real n = p_.count(), s = c.deviation.value, h = g.value * c.scale.value;
    const Real d = element(x_, i) - c.mean.value;
    const Real mean = p_.centered ? row.sum.value / n : 0,
               along = d * s * s * row.products.value / n;
    const Real value = s * (h - mean - along);
    const Real off = std::fabs(c.scale.value) * g.off + (p_.centered ? row.sum.off / n : 0) +
                     std::fabs(d) * s * s * row.products.off / n +
                     8 * u_ * (std::fabs(h) + std::fabs(mean) + std::fabs(along));
    return {value, std::fabs(s) * off + 3 * u_ * std::fabs(value)};
  }

  std::int64_t space_, channels_;
  std::string_view name_;
};

}  // namespace

std::vector<Expected> expect_rows(const NormalizationProblem& problem, const Request& request) {
  const RowsReference reference(problem, request);
  const std::size_t count = request.indices.size();
  std::vector<std::int64_t> row_of(count);
  for (std::size_t i = 0; i < count; ++i) row_of[i] = reference.row_of_result(request.indices[i]);
  std::vector<std::int64_t> asked = row_of;
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  std::vector<RowsReference::Row> rows(asked.size());
  parallel(
      static_cast<std::int64_t>(asked.size()), request.threads,
      [&](std::int64_t i) { rows[i] = reference.row(asked[i]); }, 1);
  std::vector<Expected> out(count);
  parallel(static_cast<std::int64_t>(count), request.threads, [&](std::int64_t i) {
    const auto at = std::lower_bound(asked.begin(), asked.end(), row_of[i]) - asked.begin();
    out[i] = reference.of(request.indices[i], rows[at]);
  });
  return out;
}

}  // namespace kiln::reference
