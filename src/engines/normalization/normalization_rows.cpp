#include "engines/normalization/normalization_rows.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/normalization/passes.hpp"
#include "engines/normalization/rows.hpp"

namespace kiln {
namespace {

enum RowsKernel { sums_in_clusters, sums_by_parts };

// Bytes of the tensors of x's sizes: of all, or of those that are read.
double bytes_of(const NormalizationRows& rows, bool read_alone) {
  double bytes = 0;
  for (const Operand& operand : rows.operands)
    if (operand.dims == rows.problem.dims && !(read_alone && operand.written))
      bytes += static_cast<double>(operand.count()) * static_cast<double>(size_of(operand.type));
  return bytes;
}

// A row that no registers hold is read again.
double seconds_of_rows(const NormalizationRows& rows) {
  const double again = rows.layout.held ? 0 : bytes_of(rows, true);
  return memory_bound_seconds(bytes_of(rows, false) + again, rows.device) /
         rows.busy(std::max<std::int64_t>(rows.clusters() * rows.parts(), 1));
}

}  // namespace

bool NormalizationRowsEngine::is_for(const Problem& problem) const {
  const auto* const normalization = std::get_if<NormalizationProblem>(&problem);
  return normalization != nullptr && normalization->over != NormalizationOver::batch;
}

std::variant<std::vector<Candidate>, Refusal> NormalizationRowsEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<NormalizationProblem>(any);
  const NormalizationRows rows(problem, device);
  if (rows.clusters() > limit32 / rows.parts())
    return Refusal{cat(problem.statistics() * problem.dims[0], " means need ", rows.clusters(),
                       " clusters of ", rows.parts(), " thread blocks; a launch has at most ",
                       limit32, " blocks")};
  Candidate one;
  one.kernel = sums_in_clusters;
  one.seconds = seconds_of_rows(rows);
  if (!is_backward(problem.pass) || !problem.affine) {
    one.made = Proposal{rows.step()};
    return std::vector<Candidate>{std::move(one)};
  }
  constexpr double launch_seconds = 2e-6;  // of each step after the first, on an H200
  const NormalizationPasses passes(problem, device);
  if (const Refusal refusal = passes.refusal()) return refusal;
  const double sums = memory_bound_seconds(bytes_of(rows, true), device);
  const BlockLayout narrow = passes.layout(false), wide = passes.layout(true);
  const int clustered = passes.parts(narrow, true), parts = passes.parts(wide, false);
  Candidate two = one;
  const auto with_rows = [&](std::vector<Step> steps) {
    for (Step& step : steps) step.kernel.engine = "normalization_rows";
    if (problem.dims[0] > 0) steps.push_back(rows.step());  // the sums of nothing are 0
    return steps;
  };
  one.made = Proposal{with_rows({passes.statistics(narrow, clustered, false)}), 0};
  one.seconds += sums / passes.busy(narrow, clustered) + launch_seconds;
  std::vector<Candidate> candidates{std::move(one)};
  const std::size_t workspace = passes.workspace(wide, parts);
  if (parts > 1 && workspace <= most_workspace) {
    two.kernel = sums_by_parts;
    two.workspace = workspace;
    two.made = Proposal{
        with_rows({passes.statistics(wide, parts, true), passes.finish(wide, parts)}), workspace};
    two.seconds += sums / passes.busy(wide, parts) + 2 * launch_seconds;
    candidates.push_back(std::move(two));
  }
  return candidates;
}

Proposal NormalizationRowsEngine::make(const Problem&, const DeviceDescription&,
                                       Candidate candidate) const {
  return std::move(candidate.made).value();
}

}  // namespace kiln
