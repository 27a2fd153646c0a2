#include "engines/rewrite/result_pass.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "codegen/loops.hpp"
#include "core/text.hpp"
#include "problem/result_pass.hpp"

namespace kiln {
namespace {

// What both parts may use. They run one after the other and share it.
constexpr std::array<std::size_t, 2> grants{most_workspace, 0};

struct Parts {
  ConvolutionProblem convolution;
  NormalizationProblem pass;
  // The places of their operands among those of the whole.
  std::vector<std::uint8_t> of_convolution, of_pass;

  explicit Parts(const ConvolutionProblem& problem)
      : convolution(problem),
        pass(convolution.epilogue.moments ? moments_of_result(convolution)
                                          : gradient_of_result(convolution)) {
    const std::vector<Operand> operands = operands_of(convolution);
    convolution.epilogue.moments = false;
    convolution.epilogue.gradient.reset();
    const auto place = [&](std::string_view prefix, std::string_view name) {
      const auto found = std::ranges::find_if(operands, [&](const Operand& operand) {
        const std::string_view own = operand.name;
        return own.starts_with(prefix) && own.substr(prefix.size()) == name;
      });
      return static_cast<std::uint8_t>(found - operands.begin());
    };
    for (const Operand& operand : operands_of(convolution))
      of_convolution.push_back(place("", operand.name));
    const auto result = static_cast<std::uint8_t>(operands.size() - 1);
    for (const Operand& operand : operands_of(pass)) {
      const std::string_view name = operand.name;
      const bool gradient = pass.pass == NormalizationPass::gradient;
      if (gradient ? name == "dy" || name == "dx" : name == "x")
        of_pass.push_back(result);
      else
        of_pass.push_back(place(gradient ? "norm_" : "", name));
    }
  }
};

// Appends the steps of a proposal, whose operand i is operand places[i] of the whole.
void append(StepList& to, const StepList& proposal, const std::vector<std::uint8_t>& places) {
  StepList placed = proposal;
  const auto place = [&](Step& step) {
    for (LaunchSpec::Patch& patch : step.launch.patches)
      if (patch.hole == LaunchSpec::Hole::operand) patch.operand = places[patch.operand];
    for (LaunchSpec::Map& map : step.launch.maps)
      if (map.operand != LaunchSpec::Map::workspace) map.operand = places[map.operand];
  };
  for (Step& step : placed.steps) place(step);
  kiln::append(to, std::move(placed));
}

}  // namespace

bool ResultPass::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr && asks(convolution->epilogue);
}

std::variant<std::vector<Candidate>, Refusal> ResultPass::candidates(
    const ConvolutionProblem& problem, const InnerChoice& inner) const {
  const Parts parts(problem);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    const Grant grant{.workspace = grants[i]};
    const ChoiceEstimate first = inner.estimate(parts.convolution, grant),
                         second = inner.estimate(parts.pass, grant);
    Candidate candidate;
    candidate.kernel = static_cast<int>(i);
    candidate.seconds = first.seconds + second.seconds;
    candidate.workspace = std::max(first.workspace, second.workspace);
    candidates.push_back(std::move(candidate));
    if (candidates.back().workspace == 0) break;
  }
  return candidates;
}

Proposal ResultPass::make(const ConvolutionProblem& problem, const InnerChoice& inner,
                          const Candidate& candidate) const {
  const Parts parts(problem);
  const Grant grant{.workspace = grants[static_cast<std::size_t>(candidate.kernel)]};
  const Proposal first = inner.choose(parts.convolution, grant),
                 second = inner.choose(parts.pass, grant);
  const std::string tile = cat(first.first().kernel.engine, " ", first.first().kernel.tile, "; ",
                               what(), " by a pass over the result, ", second.first().kernel.tile);
  StepList steps;
  if (!first.first().launch.empty) append(steps, first, parts.of_convolution);
  append(steps, second, parts.of_pass);
  KernelSpec& named = steps.steps.front().kernel;
  named.alignment = std::max(first.first().kernel.alignment, second.first().kernel.alignment);
  named.engine = name();
  named.tile = tile;
  return {std::move(steps), std::max(first.workspace, second.workspace)};
}

}  // namespace kiln
