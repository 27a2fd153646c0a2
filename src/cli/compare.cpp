#include "cli/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "cli/format.hpp"
#include "cli/operand.hpp"
#include "cli/random_fill.hpp"
#include "core/text.hpp"
#include "reference/convolution.hpp"
#include "reference/element.hpp"

namespace kiln::cli {
namespace {

constexpr std::int64_t least_samples = 4096;
constexpr double products_a_thread = 2e8;  // about a second of the reference

std::int64_t affordable_samples(const ConvolutionProblem& problem) {
  const double threads = std::max(1u, std::thread::hardware_concurrency());
  const auto products = static_cast<double>(problem.group_in() * problem.taps());
  return static_cast<std::int64_t>(std::min(products_a_thread * threads / products, 1e8));
}

// Flat numbers of the outputs to check, without repetition.
std::vector<std::int64_t> choose_outputs(const ConvolutionProblem& problem, std::uint64_t seed) {
  const Operand y = y_of(problem);
  const std::int64_t count = y.count();
  const std::int64_t samples = std::max(affordable_samples(problem), least_samples);
  std::vector<std::int64_t> chosen;
  if (count <= samples) {
    chosen.resize(count);
    for (std::int64_t i = 0; i < count; ++i) chosen[i] = i;
    return chosen;
  }
  const auto flat = [&](auto&& coordinate) {
    std::int64_t index = 0;
    for (int axis = 0; axis < 5; ++axis) index = index * y.dims[axis] + coordinate(axis);
    return index;
  };
  const auto first_or_last = [&](int axis, std::uint64_t bit) {
    return bit & 1 ? y.dims[axis] - 1 : std::int64_t{0};
  };
  for (std::uint64_t corner = 0; corner < 32; ++corner) {
    chosen.push_back(flat([&](int axis) { return first_or_last(axis, corner >> axis); }));
  }
  std::uint64_t drawn = 0;
  const auto draw = [&] { return random_bits(seed, drawn++); };
  for (std::int64_t i = 0; i < samples; ++i) {
    const int edge = i % 4 == 0 ? static_cast<int>(4 - draw() % problem.rank) : -1;
    chosen.push_back(flat([&](int axis) {
      const std::uint64_t bits = draw();
      return axis == edge ? first_or_last(axis, bits)
                          : static_cast<std::int64_t>(bits % y.dims[axis]);
    }));
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::string coordinates(const ConvolutionProblem& problem, std::int64_t index) {
  const Operand y = y_of(problem);
  std::array<std::int64_t, 5> at;
  for (int axis = 5; axis-- > 0; index /= y.dims[axis]) at[axis] = index % y.dims[axis];
  std::vector<std::int64_t> shown{at[0], at[1]};
  shown.insert(shown.end(), at.end() - problem.rank, at.end());
  return join(shown, ",");
}

// The first three terms of the bound; the last two belong to the type of y.
double arithmetic_bound(const ConvolutionProblem& problem, const Scaling& scaling,
                        const reference::Accumulated& sum, double y0) {
  const double u = reference::format_of(compute_type(problem.type)).unit_roundoff();
  const double c = problem.type == KILN_DATA_DOUBLE ? 16 : 8;
  const auto terms = static_cast<double>(problem.group_in() * problem.taps());
  const double size = std::fabs(sum.value), alpha = std::fabs(scaling.alpha);
  return alpha * c * u * (sum.magnitude + std::sqrt(terms) * size) +
         4 * u * (alpha * size + std::fabs(scaling.beta * y0));
}

// Outputs as they were poisoned, and elements between outputs that changed.
template <class T>
void look_at_memory(const ConvolutionProblem& problem, const Scaling& scaling, const T* before,
                    const T* after, Comparison& result) {
  const Operand y = y_of(problem);
  const std::vector<bool> members = y.members();
  const std::int64_t span = y.span();
  for (std::int64_t i = 0; i < span; ++i) {
    const bool same = std::memcmp(before + i, after + i, sizeof(T)) == 0;
    if (members.empty() || members[i]) {
      result.unwritten += same && scaling.beta == 0;
    } else {
      result.stray += !same;
    }
  }
}

template <class T>
void look_at_values(const ConvolutionProblem& problem, const Scaling& scaling,
                    std::span<const std::int64_t> chosen,
                    std::span<const reference::Accumulated> sums, const T* before, const T* after,
                    Comparison& result) {
  const Operand y = y_of(problem);
  const reference::Format format = reference::format_of(problem.type);
  double squares = 0, error_squares = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::int64_t offset = y.offset(chosen[i]);
    const double y0 = scaling.beta == 0 ? 0 : reference::to_double(before[offset]);
    const double got = reference::to_double(after[offset]);
    const double expected = scaling.alpha * sums[i].value + scaling.beta * y0;
    // What the type of y cannot hold is infinite in both.
    const bool same = got == reference::to_double(reference::from_double<T>(expected));
    double error = same && std::isinf(got) ? 0 : std::fabs(got - expected);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();

    const double bound = arithmetic_bound(problem, scaling, sums[i], y0) +
                         format.unit_roundoff() * std::fabs(expected) + format.smallest() / 2;
    if (const double share = error / bound;
        result.worst.empty() || share > result.max_bound_share) {
      result.max_bound_share = share;
      result.worst = cat("y[", coordinates(problem, chosen[i]), "] is ", significant(got, 9),
                         "; expected ", significant(expected, 9));
    }
    const double scale =
        std::fabs(scaling.alpha) * sums[i].magnitude + std::fabs(scaling.beta * y0);
    if (error > 0) result.max_error = std::max(result.max_error, error / scale);
    squares += expected * expected;
    error_squares += error * error;
  }
  if (error_squares > 0) result.relative_rms = std::sqrt(error_squares / squares);
}

}  // namespace

std::string Comparison::complaint() const {
  if (unwritten > 0) return cat(unwritten, " of ", outputs, " outputs were never written");
  if (stray > 0) return cat(stray, " elements between the outputs were written over");
  if (max_bound_share > 1) {
    return cat(worst, ", ", significant(max_bound_share, 3), " times the error allowed");
  }
  return "";
}

Comparison compare_forward(const ConvolutionProblem& problem, const Scaling& scaling,
                           std::span<const std::byte> x, std::span<const std::byte> w,
                           std::span<const std::byte> y0, std::span<const std::byte> y,
                           std::uint64_t seed) {
  Comparison result;
  result.outputs = y_of(problem).count();
  if (result.outputs == 0) return result;
  const std::vector<std::int64_t> chosen = choose_outputs(problem, seed);
  result.checked = static_cast<std::int64_t>(chosen.size());
  const auto sums = reference::forward(problem, x.data(), w.data(), chosen);
  reference::with_element(problem.type, [&](auto element) {
    using T = decltype(element);
    const T* const before = reinterpret_cast<const T*>(y0.data());
    const T* const after = reinterpret_cast<const T*>(y.data());
    look_at_memory(problem, scaling, before, after, result);
    look_at_values<T>(problem, scaling, chosen, sums, before, after, result);
  });
  return result;
}

}  // namespace kiln::cli
