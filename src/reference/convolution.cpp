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

std::int64_t offset(const Dims& strides, const Spatial& at) {
  return at[0] * strides[2] + at[1] * strides[3] + at[2] * strides[4];
}

// Adds the products of `count` pairs of elements, each pair some elements behind the one before it:
// the inner loop of all passes, in which most of the time of a check on the host device goes.
template <class T>
void add(Sum& sum, const T* a, std::int64_t a_step, const T* b, std::int64_t b_step,
         std::int64_t count) {
  Sum all = sum;  // in registers, for it may not alias the elements
  for (std::int64_t i = 0; i < count; ++i)
    all.add(to_double(a[i * a_step]), to_double(b[i * b_step]));
  sum = all;
}
// The same where padding stands for the second element of each pair.
template <class T>
void add_padding(Sum& sum, const T* a, std::int64_t a_step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum.add_padding(to_double(a[i * a_step]));
}

// Sums of one element type, that of the two tensors that are read; x, w and y stand for the
// gradients as well.
template <class T>
struct Convolution {
  const ConvolutionProblem& p;
  const T *x = nullptr, *w = nullptr, *y = nullptr;

  std::int64_t x_offset(const Spatial& at) const { return offset(p.x_strides, at); }
  std::int64_t y_offset(const Spatial& at) const { return offset(p.y_strides, at); }
  std::int64_t w_offset(const Spatial& tap) const {
    return offset(p.w_strides,
                  {flipped(p, 0, tap[0]), flipped(p, 1, tap[1]), flipped(p, 2, tap[2])});
  }

  Sum fprop(const Dims& at) const {
    const auto [n, k, o, pp, q] = at;
    const Taps depth(p, 0, o), height(p, 1, pp), width(p, 2, q);
    const auto &xs = p.x_strides, &ws = p.w_strides;
    const T* const from_x = x + n * xs[0] + k / p.group_out() * p.group_in() * xs[1];
    const T* const from_w = w + k * ws[0];
    Sum sum;
    for (std::int64_t t = 0; t < p.filter[0]; ++t)
      for (std::int64_t r = 0; r < p.filter[1]; ++r)
        for (std::int64_t s = 0; s < p.filter[2]; ++s) {
          const T* const weights = from_w + w_offset({t, r, s});
          if (depth.inside(t) && height.inside(r) && width.inside(s))
            add(sum, from_x + x_offset({place(p, 0, o, t), place(p, 1, pp, r), place(p, 2, q, s)}),
                xs[1], weights, ws[1], p.group_in());
          else
            add_padding(sum, weights, ws[1], p.group_in());
        }
    return sum;
  }

  Sum dgrad(const Dims& at) const {
    const auto [n, c, d, h, v] = at;
    const auto &ys = p.y_strides, &ws = p.w_strides;
    const std::int64_t first = c / p.group_in() * p.group_out();
    const T* const from_y = y + n * ys[0] + first * ys[1];
    const T* const from_w = w + first * ws[0] + c % p.group_in() * ws[1];
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
          const T* const weights = from_w + w_offset({t, r, s});
          if (o != padding && pp != padding && q != padding)
            add(sum, from_y + y_offset({o, pp, q}), ys[1], weights, ws[0], p.group_out());
          else
            add_padding(sum, weights, ws[0], p.group_out());
        }
      }
    }
    return sum;
  }

  Sum wgrad(const Dims& at) const {
    const auto [k, c, t, r, s] = at;
    const Spatial tap{flipped(p, 0, t), flipped(p, 1, r), flipped(p, 2, s)};
    const auto &xs = p.x_strides, &ys = p.y_strides;
    const T* const from_x = x + (k / p.group_out() * p.group_in() + c) * xs[1];
    const T* const from_y = y + k * ys[1];
    // The outputs of a row whose tap meets the input.
    const std::int64_t step = p.stride[2], origin = place(p, 2, 0, tap[2]);
    const std::int64_t first = std::clamp<std::int64_t>((-origin + step - 1) / step, 0, p.out[2]);
    const std::int64_t last =
        origin < p.in[2]
            ? std::clamp<std::int64_t>((p.in[2] - 1 - origin) / step + 1, first, p.out[2])
            : first;
    Sum sum;
    for (std::int64_t n = 0; n < p.batch; ++n)
      for (std::int64_t o = 0; o < p.out[0]; ++o)
        for (std::int64_t pp = 0; pp < p.out[1]; ++pp) {
          const T* const row = from_y + n * ys[0] + y_offset({o, pp, 0});
          const std::int64_t d = place(p, 0, o, tap[0]), h = place(p, 1, pp, tap[1]);
          if (d < 0 || d >= p.in[0] || h < 0 || h >= p.in[1]) {
            add_padding(sum, row, ys[4], p.out[2]);
            continue;
          }
          add_padding(sum, row, ys[4], first);
          add(sum, row + first * ys[4], ys[4],
              from_x + n * xs[0] + x_offset({d, h, origin + first * step}), step * xs[4],
              last - first);
          add_padding(sum, row + last * ys[4], ys[4], p.out[2] - last);
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
