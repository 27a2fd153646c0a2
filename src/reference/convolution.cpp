// Convolution by its definition: each pass walks the pairs of elements that meet in one output.
//
// Padding is zeros that are multiplied: of a NaN or an infinity they make a NaN. So are, in a data
// gradient, the zeros around dy. What lies between two elements of dy there, because of a stride,
// is no factor of any product.
#include "core/text.hpp"
#include "problem/result_pass.hpp"
#include "reference/convolution_sum.hpp"
#include "reference/element.hpp"

namespace kiln::reference {
namespace {

// Sums of one element type, that of the two tensors that are read; x, w and y stand for the
// gradients as well.
template <class T>
struct Convolution {
  const ConvolutionProblem& p;
  const T *x = nullptr, *w = nullptr, *y = nullptr;

  double x_at(std::int64_t n, std::int64_t c, const Spatial& at) const {
    const auto& s = p.x_strides;
    return to_double(x[n * s[0] + c * s[1] + at[0] * s[2] + at[1] * s[3] + at[2] * s[4]]);
  }
  bool inside_x(const Spatial& at) const {
    return at[0] >= 0 && at[0] < p.in[0] && at[1] >= 0 && at[1] < p.in[1] && at[2] >= 0 &&
           at[2] < p.in[2];
  }
  double w_at(std::int64_t k, std::int64_t c, const Spatial& tap) const {
    const auto& s = p.w_strides;
    return to_double(w[k * s[0] + c * s[1] + flipped(p, 0, tap[0]) * s[2] +
                       flipped(p, 1, tap[1]) * s[3] + flipped(p, 2, tap[2]) * s[4]]);
  }
  double y_at(std::int64_t n, std::int64_t k, const Spatial& at) const {
    const auto& s = p.y_strides;
    return to_double(y[n * s[0] + k * s[1] + at[0] * s[2] + at[1] * s[3] + at[2] * s[4]]);
  }

  Sum fprop(const Dims& at) const {
    const auto [n, k, o, pp, q] = at;
    const Taps depth(p, 0, o), height(p, 1, pp), width(p, 2, q);
    const std::int64_t first_channel = k / p.group_out() * p.group_in();
    Sum sum;
    for (std::int64_t c = 0; c < p.group_in(); ++c)
      for (std::int64_t t = 0; t < p.filter[0]; ++t)
        for (std::int64_t r = 0; r < p.filter[1]; ++r)
          for (std::int64_t s = 0; s < p.filter[2]; ++s) {
            const double weight = w_at(k, c, {t, r, s});
            if (depth.inside(t) && height.inside(r) && width.inside(s))
              sum.add(x_at(n, first_channel + c,
                           {place(p, 0, o, t), place(p, 1, pp, r), place(p, 2, q, s)}),
                      weight);
            else
              sum.add_padding(weight);
          }
    return sum;
  }

  Sum dgrad(const Dims& at) const {
    const auto [n, c, d, h, v] = at;
    const std::int64_t group = c / p.group_in();
    Sum sum;
    for (std::int64_t t = 0; t < p.filter[0]; ++t) {
      const std::int64_t o = output_at(p, 0, d, t);
      if (o == none) continue;
      for (std::int64_t r = 0; r < p.filter[1]; ++r) {
        const std::int64_t pp = output_at(p, 1, h, r);
        if (pp == none) continue;
        for (std::int64_t s = 0; s < p.filter[2]; ++s) {
          const std::int64_t q = output_at(p, 2, v, s);
          if (q == none) continue;
          const bool inside = o != padding && pp != padding && q != padding;
          for (std::int64_t k = group * p.group_out(); k < (group + 1) * p.group_out(); ++k) {
            const double weight = w_at(k, c % p.group_in(), {t, r, s});
            if (inside)
              sum.add(y_at(n, k, {o, pp, q}), weight);
            else
              sum.add_padding(weight);
          }
        }
      }
    }
    return sum;
  }

  Sum wgrad(const Dims& at) const {
    const auto [k, c, t, r, s] = at;
    const Spatial tap{flipped(p, 0, t), flipped(p, 1, r), flipped(p, 2, s)};
    const std::int64_t channel = k / p.group_out() * p.group_in() + c;
    Sum sum;
    for (std::int64_t n = 0; n < p.batch; ++n)
      for (std::int64_t o = 0; o < p.out[0]; ++o)
        for (std::int64_t pp = 0; pp < p.out[1]; ++pp)
          for (std::int64_t q = 0; q < p.out[2]; ++q) {
            const double gradient = y_at(n, k, {o, pp, q});
            const Spatial at_x{place(p, 0, o, tap[0]), place(p, 1, pp, tap[1]),
                               place(p, 2, q, tap[2])};
            if (inside_x(at_x))
              sum.add(gradient, x_at(n, channel, at_x));
            else
              sum.add_padding(gradient);
          }
    return sum;
  }

  Sum at(const Dims& index) const {
    switch (p.pass) {
      case ConvolutionPass::dgrad: return dgrad(index);
      case ConvolutionPass::wgrad: return wgrad(index);
      case ConvolutionPass::fprop: break;
    }
    return fprop(index);
  }
};

// A normalization's gradient of the results without it, or, where there are none, its sums.
std::vector<Expected> with_gradient(const ConvolutionProblem& problem,
                                    const std::vector<Operand>& operands, const Request& request,
                                    std::vector<Expected>* results) {
  const NormalizationProblem pass = gradient_of_result(problem);
  std::vector<const void*> own;
  std::size_t asked = 0;
  for (const Operand& operand : operands_of(pass)) {
    const std::string name = cat("norm_", operand.name);
    if (name == operands[request.result].name) asked = own.size();
    const void* const found = memory_of(operands, request, name);
    own.push_back(found != nullptr ? found : request.operands.back());
  }
  if (results == nullptr)
    return expect(pass, Request{request.scalars, own, request.indices, request.threads, asked});
  take_gradient(pass, {request.scalars, own, request.indices, request.threads, own.size() - 1},
                *results);
  return std::move(*results);
}

}  // namespace

std::vector<Expected> expect(const ConvolutionProblem& problem, const Request& request) {
  const std::vector<Operand> operands = operands_of(problem);
  const Operand& result = operands.back();
  const bool of_stored = request.result + 1 != operands.size();
  if (of_stored && problem.epilogue.moments) {
    const void* const own[] = {request.operands.back(), request.operands[request.result]};
    return expect(moments_of_result(problem),
                  Request{request.scalars, own, request.indices, request.threads, 1});
  }
  if (of_stored) return with_gradient(problem, operands, request, nullptr);
  const void* const z =
      problem.epilogue.residual ? memory_of(operands, request, "z") : request.operands.back();
  const Dims& z_strides = problem.epilogue.residual ? problem.z_strides : result.strides;
  const void* const bias = memory_of(operands, request, "bias");

  std::vector<Expected> out(request.indices.size());
  with_element(problem.type(), [&](auto element) {
    using T = decltype(element);
    const auto typed = [&](std::string_view name, std::string_view gradient) {
      const void* found = memory_of(operands, request, name);
      return static_cast<const T*>(found ? found : memory_of(operands, request, gradient));
    };
    const Convolution<T> convolution{problem, typed("x", "dx"), typed("w", "dw"), typed("y", "dy")};
    parallel(static_cast<std::int64_t>(out.size()), request.threads, [&](std::int64_t i) {
      std::int64_t rest = request.indices[i];
      Dims at;
      std::int64_t z_offset = 0;
      for (int axis = operand_rank; axis-- > 0; rest /= result.dims[axis]) {
        at[axis] = rest % result.dims[axis];
        z_offset += at[axis] * z_strides[axis];
      }
      const double residual =
          request.scalars.beta == 0
              ? 0
              : request.scalars.beta * read_element(problem.result_type(), z, z_offset);
      const double added =
          bias == nullptr ? 0
                          : read_element(problem.result_type(), bias, at[1] * problem.bias_stride);
      out[i] = finish(problem, request.scalars, convolution.at(at), terms_of_output(problem),
                      residual, added);
    });
  });
  if (problem.epilogue.gradient) return with_gradient(problem, operands, request, &out);
  return out;
}

double terms_of_output(const ConvolutionProblem& problem) {
  switch (problem.pass) {
    case ConvolutionPass::dgrad: return static_cast<double>(problem.group_out() * problem.taps());
    case ConvolutionPass::wgrad: return static_cast<double>(problem.batch * problem.out_pixels());
    case ConvolutionPass::fprop: break;
  }
  return static_cast<double>(problem.group_in() * problem.taps());
}

}  // namespace kiln::reference
