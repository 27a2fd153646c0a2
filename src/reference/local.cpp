// Locally connected layers by their definition: a convolution's sums, with weights that lie
// elsewhere for each output pixel and, where images have their own, for each image. An output pixel
// that does not exist has no weights, so a data gradient has no products with padding.
#include "reference/convolution_sum.hpp"
#include "reference/element.hpp"

namespace kiln::reference {
namespace {

template <class T>
struct Local {
  const LocalProblem& p;
  const T *x = nullptr, *w = nullptr, *y = nullptr;

  double x_at(std::int64_t n, std::int64_t c, const Spatial& at) const {
    const auto& s = p.conv.x_strides;
    return to_double(x[n * s[0] + c * s[1] + at[0] * s[2] + at[1] * s[3] + at[2] * s[4]]);
  }
  double y_at(std::int64_t n, std::int64_t k, const Spatial& at) const {
    const auto& s = p.conv.y_strides;
    return to_double(y[n * s[0] + k * s[1] + at[0] * s[2] + at[1] * s[3] + at[2] * s[4]]);
  }
  double w_at(std::int64_t n, const Spatial& pixel, std::int64_t k, std::int64_t c,
              const Spatial& tap) const {
    const auto& outer = p.outer_strides;
    const auto& s = p.conv.w_strides;
    std::int64_t offset = n * outer[0] + k * s[0] + c * s[1];
    for (int i = 0; i < 3; ++i)
      offset += pixel[i] * outer[i + 1] + flipped(p.conv, i, tap[i]) * s[i + 2];
    return to_double(w[offset]);
  }

  Sum fprop(const Dims& at) const {
    const ConvolutionProblem& c = p.conv;
    const auto [n, k, o, pp, q] = at;
    const Taps depth(c, 0, o), height(c, 1, pp), width(c, 2, q);
    const std::int64_t first_channel = k / c.group_out() * c.group_in();
    Sum sum;
    for (std::int64_t i = 0; i < c.group_in(); ++i)
      for (std::int64_t t = 0; t < c.filter[0]; ++t)
        for (std::int64_t r = 0; r < c.filter[1]; ++r)
          for (std::int64_t s = 0; s < c.filter[2]; ++s) {
            const double weight = w_at(n, {o, pp, q}, k, i, {t, r, s});
            if (depth.inside(t) && height.inside(r) && width.inside(s))
              sum.add(x_at(n, first_channel + i,
                           {place(c, 0, o, t), place(c, 1, pp, r), place(c, 2, q, s)}),
                      weight);
            else
              sum.add_padding(weight);
          }
    return sum;
  }

  Sum dgrad(const Dims& at) const {
    const ConvolutionProblem& c = p.conv;
    const auto [n, channel, d, h, v] = at;
    const std::int64_t group = channel / c.group_in();
    Sum sum;
    for (std::int64_t t = 0; t < c.filter[0]; ++t)
      for (std::int64_t r = 0; r < c.filter[1]; ++r)
        for (std::int64_t s = 0; s < c.filter[2]; ++s) {
          const Spatial pixel{output_at(c, 0, d, t), output_at(c, 1, h, r), output_at(c, 2, v, s)};
          if (std::min({pixel[0], pixel[1], pixel[2]}) < 0) continue;
          for (std::int64_t k = group * c.group_out(); k < (group + 1) * c.group_out(); ++k)
            sum.add(y_at(n, k, pixel), w_at(n, pixel, k, channel % c.group_in(), {t, r, s}));
        }
    return sum;
  }

  Sum wgrad(std::int64_t image, const Spatial& pixel, const Dims& at) const {
    const ConvolutionProblem& c = p.conv;
    const auto [k, i, t, r, s] = at;
    const Spatial where{place(c, 0, pixel[0], flipped(c, 0, t)),
                        place(c, 1, pixel[1], flipped(c, 1, r)),
                        place(c, 2, pixel[2], flipped(c, 2, s))};
    bool inside = true;
    for (int axis = 0; axis < 3; ++axis)
      inside = inside && where[axis] >= 0 && where[axis] < c.in[axis];
    const std::int64_t channel = k / c.group_out() * c.group_in() + i;
    Sum sum;
    for (std::int64_t n = p.per_image() ? image : 0; n < (p.per_image() ? image + 1 : c.batch);
         ++n) {
      const double gradient = y_at(n, k, pixel);
      if (inside)
        sum.add(gradient, x_at(n, channel, where));
      else
        sum.add_padding(gradient);
    }
    return sum;
  }
};

}  // namespace

std::vector<Expected> expect(const LocalProblem& problem, const Request& request) {
  const std::vector<Operand> operands = operands_of(problem);
  const Operand& result = operands.back();
  const void* const bias = memory_of(operands, request, "bias");
  const double terms = terms_of_output(problem);

  std::vector<Expected> out(request.indices.size());
  with_element(problem.conv.type(), [&](auto element) {
    using T = decltype(element);
    const auto typed = [&](std::string_view name, std::string_view gradient) {
      const void* found = memory_of(operands, request, name);
      return static_cast<const T*>(found ? found : memory_of(operands, request, gradient));
    };
    const Local<T> local{problem, typed("x", "dx"), typed("w", "dw"), typed("y", "dy")};
    parallel(static_cast<std::int64_t>(out.size()), request.threads, [&](std::int64_t i) {
      std::int64_t rest = request.indices[i];
      std::array<std::int64_t, Operand::axes> place{};
      for (int axis = Operand::axes; axis-- > result.first_axis(); rest /= result.size(axis))
        place[axis] = rest % result.size(axis);
      Dims at;
      std::copy(place.begin() + outer_rank, place.end(), at.begin());
      const std::int64_t offset = result.offset(request.indices[i]);
      const double before =
          request.scalars.beta == 0
              ? 0
              : request.scalars.beta * read_element(result.type, request.operands.back(), offset);
      double added = 0;
      if (bias != nullptr) {
        std::int64_t bias_offset = 0;
        for (int axis = 1; axis < operand_rank; ++axis)
          bias_offset += at[axis] * problem.bias_stride(axis);
        added = read_element(result.type, bias, bias_offset);
      }
      const Sum sum = problem.conv.pass == ConvolutionPass::fprop ? local.fprop(at)
                      : problem.conv.pass == ConvolutionPass::dgrad
                          ? local.dgrad(at)
                          : local.wgrad(place[0], {place[1], place[2], place[3]}, at);
      out[i] = finish(problem.conv, request.scalars, sum, terms, before, added);
    });
  });
  return out;
}

double terms_of_output(const LocalProblem& problem) {
  if (problem.conv.pass != ConvolutionPass::wgrad) return terms_of_output(problem.conv);
  return problem.per_image() ? 1
                             : static_cast<double>(std::max<std::int64_t>(problem.conv.batch, 1));
}

}  // namespace kiln::reference
