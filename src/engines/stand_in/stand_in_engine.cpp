#include "engines/stand_in/stand_in_engine.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {
namespace {

// The numbers of phases that kernels have room for in their parameters: one, four (a stride of 2 in
// two dimensions), and enough for nearly all other data gradients.
constexpr std::int64_t phase_counts[] = {1, 4, 32};

}  // namespace

std::variant<std::vector<Candidate>, Refusal> StandInEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  auto answer = ask(exact(), any, device);
  auto* const all = std::get_if<std::vector<Candidate>>(&answer);
  if (all == nullptr) return answer;
  if (auto refused = refusal(problem)) return refused;
  select(*all, problem, device);
  if (all->empty()) return Refusal{"none of its tiles suits the problem"};
  // Sizes fit into 32 bits in all candidates or in none, so one is tried.
  Proposal first = exact().make(any, device, all->front());
  if (!generalize(first, device))
    return Refusal{
        "a size or a stride is larger than the 32 bits that kernels for every shape take"};
  return answer;
}

Proposal StandInEngine::make(const Problem& problem, const DeviceDescription& device,
                             Candidate candidate) const {
  Proposal proposal = exact().make(problem, device, std::move(candidate));
  for (Step& step : proposal.steps) step.kernel.engine = name();
  if (!generalize(proposal, device))
    fail(KILN_STATUS_INTERNAL_ERROR, name(), " has a size that its kernels take in 32 bits");
  return proposal;
}

void pad_phases(KernelSpec& kernel, std::int64_t phases) {
  for (Constant& constant : kernel.constants) {
    if (constant.name == "PHASES") constant.value = phases;
    if (auto* const values = std::get_if<std::vector<std::int64_t>>(&constant.value))
      values->resize(static_cast<std::size_t>(phases));
  }
}

void pad_phases(KernelSpec& kernel) {
  const std::int64_t phases = constant<std::int64_t>(kernel, "PHASES");
  pad_phases(kernel, *std::ranges::lower_bound(phase_counts, std::max<std::int64_t>(phases, 1)));
}

Refusal phase_refusal(const ConvolutionProblem& problem) {
  const auto phases = static_cast<std::int64_t>(make_gather(problem).phases.size());
  const std::int64_t most = *std::rbegin(phase_counts);
  if (phases <= most) return {};
  return cat("a data gradient of ", phases,
             " phases, positions modulo the stride; expected at most ", most);
}

}  // namespace kiln
