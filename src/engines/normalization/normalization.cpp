#include "engines/normalization/normalization.hpp"

#include "engines/cost/cost_model.hpp"
#include "engines/engine.hpp"
#include "engines/normalization/passes.hpp"

namespace kiln {
namespace {

enum Kernel { in_clusters, by_parts };

double bytes_of_passes(const NormalizationPasses& passes, bool statistics) {
  double bytes = 0;
  for (const Operand& operand : passes.operands)
    if (operand.dims == passes.problem.dims &&
        (!statistics || !operand.written || !passes.applies()))
      bytes += static_cast<double>(operand.count()) * static_cast<double>(size_of(operand.type));
  // Training's statistics do not read the residual.
  if (statistics && !passes.backward() && passes.problem.residual) bytes /= 2;
  return bytes;
}

// `busy`: the share of the chip's places that has blocks while the statistics are taken.
double seconds_of(const NormalizationPasses& passes, double busy, int launches) {
  constexpr double launch_seconds = 2e-6;  // of each step after the first, on an H200
  const double bytes = passes.applies() ? bytes_of_passes(passes, false) : 0;
  double seconds = memory_bound_seconds(bytes, passes.device);
  if (passes.has_statistics())
    seconds += memory_bound_seconds(bytes_of_passes(passes, true), passes.device) / busy;
  return seconds + launches * launch_seconds;
}

}  // namespace

bool NormalizationEngine::is_for(const Problem& problem) const {
  const auto* const normalization = std::get_if<NormalizationProblem>(&problem);
  return normalization != nullptr && normalization->over == NormalizationOver::batch;
}

std::variant<std::vector<Candidate>, Refusal> NormalizationEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const NormalizationPasses passes(std::get<NormalizationProblem>(any), device);
  if (const Refusal refusal = passes.refusal()) return refusal;
  Candidate one;
  one.kernel = in_clusters;
  if (!passes.has_statistics()) {
    const bool combines = passes.problem.pass == NormalizationPass::combine;
    one.made = Proposal{combines ? passes.combine() : passes.apply()};
    one.seconds = seconds_of(passes, 1, 0);
    return std::vector<Candidate>{std::move(one)};
  }
  const BlockLayout narrow = passes.layout(false), wide = passes.layout(true);
  const int clustered = passes.parts(narrow, true), parts = passes.parts(wide, false);
  one.made = Proposal{passes.statistics(narrow, clustered, false)};
  one.seconds = seconds_of(passes, passes.busy(narrow, clustered), passes.applies() ? 1 : 0);
  if (passes.applies()) one.made->steps.push_back(passes.apply());
  std::vector<Candidate> candidates{std::move(one)};
  const std::size_t workspace = passes.workspace(wide, parts);
  if (parts > 1 && workspace <= most_workspace) {
    Candidate two;
    two.kernel = by_parts;
    two.workspace = workspace;
    two.made =
        Proposal{{passes.statistics(wide, parts, true), passes.finish(wide, parts)}, workspace};
    if (passes.applies()) two.made->steps.push_back(passes.apply());
    two.seconds = seconds_of(passes, passes.busy(wide, parts), passes.applies() ? 2 : 1);
    candidates.push_back(std::move(two));
  }
  return candidates;
}

Proposal NormalizationEngine::make(const Problem&, const DeviceDescription&,
                                   Candidate candidate) const {
  return std::move(candidate.made).value();
}

}  // namespace kiln
