#include "engines/rewrite/stride_phases.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/relayout/copies.hpp"

namespace kiln {
namespace {

// Each phase is a launch, and reads dy.
constexpr std::int64_t most_phases = 8;
// Phases write every stride-th pixel, and read dy again, which the estimates of layers without
// strides were not fitted to: on an H200, four phases of groups of 24 and 40 channels took 0.9
// to 1.2 times the sum.
constexpr double phases_share = 1.1;

std::int64_t count_of(const ConvolutionProblem& problem) {
  return problem.stride[0] * problem.stride[1] * problem.stride[2];
}

// With i = j * stride + at, dx[i] is the sum over u of dy[j + pad - u] * w[first + u * stride].
struct Phase {
  Spatial at;     // of its first pixel of dx
  Spatial first;  // tap
  ConvolutionProblem problem;
};

Phase phase_of(const ConvolutionProblem& whole, const Spatial& at) {
  Phase phase{at, {}, whole};
  ConvolutionProblem& problem = phase.problem;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const std::int64_t stride = whole.stride[i];
    if (stride == 1) continue;
    const std::int64_t first = (at[i] + whole.pad[i]) % stride;
    problem.stride[i] = 1;
    problem.in[i] = ceil_div(whole.in[i] - at[i], stride);
    problem.filter[i] = ceil_div(whole.filter[i] - first, stride);
    problem.pad[i] = (at[i] + whole.pad[i]) / stride;
    phase.first[i] = whole.mode == KILN_CONVOLUTION
                         ? whole.filter[i] - 1 - first - stride * (problem.filter[i] - 1)
                         : first;
    const auto spread = [&](Dims& strides, std::int64_t size) {
      strides[i + 2] = size > 1 ? strides[i + 2] * stride : 0;
    };
    spread(problem.x_strides, problem.in[i]);
    spread(problem.z_strides, problem.in[i]);
    spread(problem.w_strides, problem.filter[i]);
  }
  return phase;
}

RelayoutPlaces places_of(const ConvolutionProblem& whole, const Phase& phase) {
  RelayoutPlaces places;
  for (const Operand& operand : operands_of(whole)) {
    const std::string_view name = operand.name;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < phase.at.size(); ++i) {
      if (name == "w") first += phase.first[i] * operand.strides[i + 2];
      if (name == "dx" || name == "z") first += phase.at[i] * operand.strides[i + 2];
    }
    places.operands.push_back({.first = first * static_cast<std::int64_t>(size_of(operand.type))});
  }
  return places;
}

std::vector<Phase> phases_of(const ConvolutionProblem& problem) {
  std::vector<Phase> phases;
  Spatial at{};
  for (at[0] = 0; at[0] < problem.stride[0]; ++at[0])
    for (at[1] = 0; at[1] < problem.stride[1]; ++at[1])
      for (at[2] = 0; at[2] < problem.stride[2]; ++at[2]) {
        phases.push_back(phase_of(problem, at));
        // A phase begins at a pixel and a tap, wherever these lie.
        for (const RelayoutPlaces::Place& place : places_of(problem, phases.back()).operands)
          phases.back().problem.alignment = std::gcd(phases.back().problem.alignment, place.first);
      }
  return phases;
}

// Other layers have engines that compute all phases in one launch, on copies if need be. Asking
// every engine about every phase of them too would take long.
Refusal kind_refusal(const ConvolutionProblem& problem) {
  constexpr std::int64_t at_once = 16;  // channels that the dense engines multiply
  if (size_of(problem.type()) != 2) return "elements of more than 16 bits; this rewrite takes 16";
  if (problem.x_strides[1] > 1 || problem.y_strides[1] > 1)
    return "the channels of dx or dy are not contiguous";
  if (problem.groups == 1 && problem.in[ConvolutionProblem::depth] == 1)
    return "one group and no depth, which other engines take";
  if (problem.group_in() % at_once == 0 && problem.group_out() % at_once == 0)
    return cat("groups of ", problem.group_in(), " input and ", problem.group_out(),
               " output channels are multiples of ", at_once, ", which other engines take");
  return {};
}

Refusal refusal_of(const ConvolutionProblem& problem) {
  constexpr const char* names[] = {"depth", "height", "width"};
  if (auto refused = kind_refusal(problem)) return refused;
  if (count_of(problem) > most_phases)
    return cat(count_of(problem), " phases; expected at most ", most_phases);
  for (std::size_t i = 0; i < problem.stride.size(); ++i) {
    const std::int64_t stride = problem.stride[i];
    if (stride == 1) continue;
    if (problem.dilation[i] != 1)
      return cat("a dilation of ", problem.dilation[i], " in ", names[i], "; expected 1");
    if (problem.pad[i] < 0)
      return cat("a padding of ", problem.pad[i], " in ", names[i], "; expected at least 0");
    if (problem.filter[i] < stride)
      return cat("the filter has ", problem.filter[i], " taps in ", names[i], " for a stride of ",
                 stride, ", so that some phases have none");
    if (problem.in[i] < stride)
      return cat("dx has ", problem.in[i], " elements in ", names[i], " for a stride of ", stride,
                 ", so that some phases have none");
  }
  return {};
}

}  // namespace

bool StridePhases::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr && convolution->pass == ConvolutionPass::dgrad &&
         count_of(*convolution) > 1;
}

std::variant<std::vector<Candidate>, Refusal> StridePhases::candidates(
    const ConvolutionProblem& problem, const InnerChoice& inner) const {
  if (auto refused = refusal_of(problem)) return refused;
  std::vector<Candidate> only(1);
  for (const Phase& phase : phases_of(problem))
    only[0].seconds += phases_share * inner.estimate(phase.problem, Grant{.workspace = 0}).seconds;
  return only;
}

Proposal StridePhases::make(const ConvolutionProblem& problem, const InnerChoice& inner,
                            const Candidate&) const {
  StepList steps;
  std::size_t alignment = 1;
  std::string tile;
  for (const Phase& phase : phases_of(problem)) {
    const Proposal part = inner.choose(phase.problem, Grant{.workspace = 0});
    const KernelSpec& kernel = part.first().kernel;
    if (tile.empty())
      tile = cat(count_of(problem), " phases, the first by ", kernel.engine, " ", kernel.tile);
    alignment = std::max(alignment, kernel.alignment);
    append_relayout(steps, part, places_of(problem, phase));
  }
  KernelSpec& named = steps.steps.front().kernel;
  named.engine = name();
  named.tile = tile;
  named.alignment = alignment;
  return {std::move(steps), 0};
}

}  // namespace kiln
