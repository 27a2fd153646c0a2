#include "reference/convolution.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "reference/element.hpp"

namespace kiln::reference {
namespace {

// The taps of one dimension that meet the input: first <= t < last, and where they meet it.
struct Taps {
  std::int64_t first, last, origin;  // tap t reads origin + t * dilation

  Taps(const ConvolutionProblem& problem, int axis, std::int64_t output) {
    const std::int64_t in = problem.in[axis], dilation = problem.dilation[axis];
    origin = output * problem.stride[axis] - problem.pad[axis];
    first = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
    last = origin < in ? std::min(problem.filter[axis], (in - 1 - origin) / dilation + 1) : 0;
  }
};

template <class T>
Accumulated forward_at(const ConvolutionProblem& problem, const T* x, const T* w,
                       std::int64_t index) {
  const auto next_digit = [&index](std::int64_t size) {
    const std::int64_t digit = index % size;
    index /= size;
    return digit;
  };
  const std::int64_t q = next_digit(problem.out[2]), p = next_digit(problem.out[1]),
                     o = next_digit(problem.out[0]), k = next_digit(problem.out_channels),
                     n = index;
  const Taps depth(problem, 0, o), height(problem, 1, p), width(problem, 2, q);

  const auto& xs = problem.x_strides;
  const auto& ws = problem.w_strides;
  const std::int64_t group = k / problem.group_out();
  const T* const x_group = x + n * xs[0] + group * problem.group_in() * xs[1];
  const T* const w_filter = w + k * ws[0];
  const auto tap = [&](int axis, std::int64_t t) {
    return problem.mode == KILN_CONVOLUTION ? problem.filter[axis] - 1 - t : t;
  };

  Accumulated sum;
  for (std::int64_t c = 0; c < problem.group_in(); ++c) {
    for (std::int64_t t = depth.first; t < depth.last; ++t) {
      for (std::int64_t r = height.first; r < height.last; ++r) {
        const T* const x_row = x_group + c * xs[1] +
                               (depth.origin + t * problem.dilation[0]) * xs[2] +
                               (height.origin + r * problem.dilation[1]) * xs[3];
        const T* const w_row = w_filter + c * ws[1] + tap(0, t) * ws[2] + tap(1, r) * ws[3];
        for (std::int64_t s = width.first; s < width.last; ++s) {
          const double product =
              to_double(x_row[(width.origin + s * problem.dilation[2]) * xs[4]]) *
              to_double(w_row[tap(2, s) * ws[4]]);
          sum.value += product;
          sum.magnitude += std::fabs(product);
        }
      }
    }
  }
  return sum;
}

template <class T>
std::vector<Accumulated> forward_all(const ConvolutionProblem& problem, const T* x, const T* w,
                                     std::span<const std::int64_t> indices, int threads) {
  constexpr std::size_t share = 64;  // outputs that a thread takes at a time
  std::vector<Accumulated> sums(indices.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t begin; (begin = next.fetch_add(share)) < indices.size();) {
      const std::size_t end = std::min(begin + share, indices.size());
      for (std::size_t i = begin; i < end; ++i) sums[i] = forward_at(problem, x, w, indices[i]);
    }
  };
  const std::size_t wanted =
      threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(wanted, indices.size() / share + 1); ++i) {
    helpers.emplace_back(work);
  }
  work();
  helpers.clear();  // joins them
  return sums;
}

}  // namespace

std::vector<Accumulated> forward(const ConvolutionProblem& problem, const double* x,
                                 const double* w, std::span<const std::int64_t> indices,
                                 int threads) {
  return forward_all(problem, x, w, indices, threads);
}

std::vector<Accumulated> forward(const ConvolutionProblem& problem, const void* x, const void* w,
                                 std::span<const std::int64_t> indices, int threads) {
  return with_element(problem.type, [&](auto element) {
    using T = decltype(element);
    return forward_all(problem, static_cast<const T*>(x), static_cast<const T*>(w), indices,
                       threads);
  });
}

}  // namespace kiln::reference
