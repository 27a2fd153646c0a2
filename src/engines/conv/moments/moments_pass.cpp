#include "engines/conv/moments/moments_pass.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/text.hpp"
#include "engines/choice_estimate.hpp"
#include "problem/result_moments.hpp"

namespace kiln {
namespace {

// What both parts may use. They run one after the other and share it.
constexpr std::array<std::size_t, 2> grants{most_workspace, 0};

struct Parts {
  ConvolutionProblem convolution;
  NormalizationProblem moments;
  explicit Parts(const Problem& problem)
      : convolution(std::get<ConvolutionProblem>(problem)),
        moments(moments_of_result(convolution)) {
    convolution.epilogue.moments = false;
  }
};

// Appends the steps of a proposal, whose operand i is operand places[i] of the whole.
void append(std::vector<Step>& steps, const Proposal& proposal,
            const std::vector<std::uint8_t>& places) {
  const auto add = [&](Step step) {
    for (LaunchSpec::Patch& patch : step.launch.patches)
      if (patch.hole == LaunchSpec::Hole::operand) patch.operand = places[patch.operand];
    for (LaunchSpec::Map& map : step.launch.maps)
      if (map.operand != LaunchSpec::Map::workspace) map.operand = places[map.operand];
    steps.push_back(std::move(step));
  };
  add(static_cast<const Step&>(proposal));
  for (const Step& step : proposal.then) add(step);
}

Proposal proposal_for(const Problem& problem, const DeviceDescription& device,
                      std::size_t workspace) {
  std::vector<EngineRefusal> refusals;
  return choose(problem, device, Terms{.workspace = workspace}, refusals);
}

}  // namespace

bool MomentsPassEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr && convolution->epilogue.moments;
}

std::variant<std::vector<Candidate>, Refusal> MomentsPassEngine::candidates(
    const Problem& problem, const DeviceDescription& device) const {
  const Parts parts(problem);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    const Terms terms{.workspace = grants[i]};
    const ChoiceEstimate first = estimate_choice(parts.convolution, device, terms),
                         second = estimate_choice(parts.moments, device, terms);
    Candidate candidate;
    candidate.kernel = static_cast<int>(i);
    candidate.seconds = first.seconds + second.seconds;
    candidate.workspace = std::max(first.workspace, second.workspace);
    candidates.push_back(std::move(candidate));
    if (candidates.back().workspace == 0) break;
  }
  return candidates;
}

Proposal MomentsPassEngine::make(const Problem& problem, const DeviceDescription& device,
                                 Candidate candidate) const {
  const Parts parts(problem);
  const std::size_t workspace = grants[static_cast<std::size_t>(candidate.kernel)];
  const Proposal first = proposal_for(parts.convolution, device, workspace),
                 second = proposal_for(parts.moments, device, workspace);
  // The moments stand before the result.
  const auto result = static_cast<std::uint8_t>(operands_of(parts.convolution).size());
  const auto moments = static_cast<std::uint8_t>(result - 1);
  std::vector<std::uint8_t> places;
  for (std::uint8_t i = 0; i < moments; ++i) places.push_back(i);
  places.push_back(result);
  const std::string tile = cat(first.kernel.engine, " ", first.kernel.tile,
                               "; moments by a pass over the result, ", second.kernel.tile);
  std::vector<Step> steps;
  if (!first.launch.empty) append(steps, first, places);
  append(steps, second, {result, moments});
  steps.front().kernel.alignment = std::max(first.kernel.alignment, second.kernel.alignment);
  steps.front().kernel.engine = name();
  steps.front().kernel.tile = tile;
  Proposal out{std::move(steps.front()), {}, std::max(first.workspace, second.workspace)};
  out.then.assign(std::make_move_iterator(steps.begin() + 1), std::make_move_iterator(steps.end()));
  return out;
}

}  // namespace kiln
