#include "cli/operation/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "cli/format.hpp"
#include "cli/operation/random_fill.hpp"
#include "core/text.hpp"
#include "reference/element.hpp"
#include "reference/reference.hpp"

namespace kiln::cli {
namespace {

constexpr double terms_a_second = 1e8;  // of the reference, on one thread

std::int64_t affordable_samples(const Problem& problem, double seconds) {
  const double threads = std::max(1u, std::thread::hardware_concurrency());
  const double terms = reference::terms_of_output(problem);
  return static_cast<std::int64_t>(std::min(seconds * terms_a_second * threads / terms, 1e7));
}

// The outputs to check: each once, ascending, by their numbers in a dense result.
std::vector<std::int64_t> choose_outputs(const Problem& problem, const Operand& result,
                                         const Sampling& sampling) {
  const std::int64_t count = result.count();
  const std::int64_t samples =
      std::max(affordable_samples(problem, sampling.seconds), sampling.least);
  std::vector<std::int64_t> chosen;
  if (count <= samples) {
    chosen.resize(count);
    for (std::int64_t i = 0; i < count; ++i) chosen[i] = i;
    return chosen;
  }
  const int first = result.first_axis();
  const auto flat = [&](auto&& coordinate) {
    std::int64_t index = 0;
    for (int axis = first; axis < Operand::axes; ++axis)
      index = index * result.size(axis) + coordinate(axis);
    return index;
  };
  const auto first_or_last = [&](int axis, std::uint64_t bit) {
    return bit & 1 ? result.size(axis) - 1 : std::int64_t{0};
  };
  for (std::uint64_t corner = 0; corner < std::uint64_t{1} << (Operand::axes - first); ++corner) {
    chosen.push_back(flat([&](int axis) { return first_or_last(axis, corner >> (axis - first)); }));
  }
  std::uint64_t drawn = 0;
  const auto draw = [&] { return random_bits(sampling.seed, drawn++); };
  for (std::int64_t i = 0; i < samples; ++i) {
    const int edge = i % 4 == 0 ? static_cast<int>(Operand::axes - 3 + draw() % 3) : -1;
    chosen.push_back(flat([&](int axis) {
      const std::uint64_t bits = draw();
      return axis == edge ? first_or_last(axis, bits)
                          : static_cast<std::int64_t>(bits % result.size(axis));
    }));
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

// Counts outputs that still are the poison of before, and elements between outputs that changed.
template <class T>
void look_at_memory(const Operand& result, bool poisoned, const T* before, const T* after,
                    Comparison& comparison) {
  const std::vector<bool> members = result.members();
  const std::int64_t span = result.span();
  for (std::int64_t i = 0; i < span; ++i) {
    const bool same = std::memcmp(before + i, after + i, sizeof(T)) == 0;
    if (members.empty() || members[i]) {
      comparison.unwritten += same && poisoned;
    } else {
      comparison.stray += !same;
    }
  }
}

template <class T>
void look_at_values(const Operand& result, std::span<const std::int64_t> chosen,
                    std::span<const reference::Expected> expected, std::span<const double> after,
                    Comparison& comparison) {
  const reference::Format format = reference::format_of(result.type);
  double squares = 0, error_squares = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const double got = after[i];
    const double value = expected[i].value_for(got);
    const double held = reference::to_double(reference::from_double<T>(value));
    const bool same = got == held || (std::isnan(got) && std::isnan(value));
    double error = same && !std::isfinite(got) ? 0 : std::fabs(got - value);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();

    const double bound =
        expected[i].allowed + format.unit_roundoff() * std::fabs(value) + format.smallest() / 2;
    if (const double share = error == 0 ? 0 : error / bound;
        comparison.worst.empty() || !(share <= comparison.max_bound_share)) {
      comparison.max_bound_share = std::isnan(share) ? HUGE_VAL : share;
      comparison.worst = cat(result.name, "[", result.coordinates(chosen[i]), "] is ",
                             significant(got, 9), "; expected ", significant(value, 9));
    }
    if (error > 0) comparison.max_error = std::max(comparison.max_error, error / expected[i].scale);
    if (!std::isfinite(value)) continue;
    squares += value * value;
    error_squares += error * error;
  }
  if (error_squares > 0) comparison.relative_rms = std::sqrt(error_squares / squares);
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

Samples::Samples(const Problem& problem, const Scalars& scalars,
                 std::span<const void* const> operands, const Sampling& sampling, int result) {
  const std::vector<Operand> all = operands_of(problem);
  result_ = result < 0 ? all.back() : all[static_cast<std::size_t>(result)];
  if (result_.count() == 0) return;
  chosen_ = choose_outputs(problem, result_, sampling);
  expected_ = reference::expect(problem, scalars, operands, chosen_, 0, result);
}

std::vector<std::int64_t> Samples::offsets() const {
  std::vector<std::int64_t> offsets;
  for (const std::int64_t index : chosen_) offsets.push_back(result_.offset(index));
  return offsets;
}

Comparison Samples::compare(std::span<const double> outputs) const {
  Comparison comparison;
  comparison.outputs = result_.count();
  comparison.checked = static_cast<std::int64_t>(chosen_.size());
  reference::with_element(result_.type, [&](auto element) {
    look_at_values<decltype(element)>(result_, chosen_, expected_, outputs, comparison);
  });
  return comparison;
}

Comparison compare(const Problem& problem, const Scalars& scalars,
                   const std::vector<std::vector<std::byte>>& memory,
                   const std::vector<std::vector<std::byte>>& after, std::uint64_t seed) {
  const std::vector<Operand> operands = operands_of(problem);
  std::vector<const void*> before;
  for (const std::vector<std::byte>& bytes : memory) before.push_back(bytes.data());
  Comparison all;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (!operand.written) {
      all.stray += memory[i] != after[i];
      continue;
    }
    // The moments and sums of a convolution's result are those of what was stored.
    std::vector<const void*> given = before;
    const bool of_stored = std::holds_alternative<ConvolutionProblem>(problem);
    if (of_stored && i + 1 < operands.size()) given.back() = after.back().data();
    const Samples samples(problem, scalars, given, {.seed = seed}, static_cast<int>(i));
    std::vector<double> outputs;
    for (const std::int64_t offset : samples.offsets())
      outputs.push_back(reference::read_element(operand.type, after[i].data(), offset));
    Comparison own = samples.compare(outputs);
    const bool last = i + 1 == operands.size();
    const bool poisoned = !operand.updated && scalars.beta == 0;
    reference::with_element(operand.type, [&](auto element) {
      using T = decltype(element);
      look_at_memory(operand, poisoned, reinterpret_cast<const T*>(memory[i].data()),
                     reinterpret_cast<const T*>(after[i].data()), own);
    });
    own.unwritten += all.unwritten;
    own.stray += all.stray;
    own.outputs += all.outputs;
    own.checked += all.checked;
    const bool all_wrong = all.max_bound_share > 1;
    if (all_wrong || (!last && own.max_bound_share <= 1)) {
      all.unwritten = own.unwritten, all.stray = own.stray;
      all.outputs = own.outputs, all.checked = own.checked;
    } else {
      all = own;
    }
  }
  return all;
}

Comparison compare(const Problem& problem, const Scalars& scalars,
                   const std::vector<std::vector<std::byte>>& memory,
                   std::span<const std::byte> after, std::uint64_t seed) {
  std::vector<std::vector<std::byte>> all = memory;
  all.back().assign(after.begin(), after.end());
  return compare(problem, scalars, memory, all, seed);
}

}  // namespace kiln::cli
