#include "engines/normalization/normalization_rows.hpp"

#include <algorithm>
#include <optional>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/normalization/passes.hpp"
#include "engines/normalization/rows.hpp"

namespace kiln {
namespace {

enum RowsKernel { sums_in_clusters, sums_by_parts, in_stages, with_columns };

constexpr double launch_seconds = 2e-6;  // of each step after the first, on an H200

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

// What makes dscale and dbias, apart from the pass that makes dx.
struct ChannelSums {
  std::vector<Step> steps;
  double seconds = 0;
  std::size_t workspace = 0;
  int kernel = sums_in_clusters;
};
std::vector<ChannelSums> channel_sums(const NormalizationPasses& passes, double bytes) {
  const double read = memory_bound_seconds(bytes, passes.device);
  const BlockLayout narrow = passes.layout(false), wide = passes.layout(true);
  const int clustered = passes.parts(narrow, true), parts = passes.parts(wide, false);
  std::vector<ChannelSums> out{{{passes.statistics(narrow, clustered, false)},
                                read / passes.busy(narrow, clustered) + launch_seconds,
                                0,
                                sums_in_clusters}};
  const std::size_t workspace = passes.workspace(wide, parts);
  if (parts > 1 && workspace <= most_workspace)
    out.push_back({{passes.statistics(wide, parts, true), passes.finish(wide, parts)},
                   read / passes.busy(wide, parts) + 2 * launch_seconds,
                   workspace,
                   sums_by_parts});
  for (ChannelSums& sums : out)
    for (Step& step : sums.steps) step.kernel.engine = "normalization_rows";
  return out;
}

// Rows in stages, if that has a benefit: not forward where registers hold a row, whose tensor is
// read once then. The statistics of pixels are too many.
std::optional<Candidate> staged(const NormalizationRows& whole) {
  const NormalizationProblem& problem = whole.problem;
  const bool backward = is_backward(problem.pass), sums = backward && problem.affine;
  if (problem.over == NormalizationOver::pixel && problem.space() > 1) return std::nullopt;
  if (problem.dims[0] == 0 || (!sums && whole.layout.held)) return std::nullopt;
  const NormalizationRows rows(problem, whole.device, RowRoad::stages);
  if (rows.clusters() > limit32 / rows.parts()) return std::nullopt;
  if (sums && !rows.sums_channels()) return std::nullopt;
  const std::size_t workspace = rows.workspace();
  if (workspace > most_workspace) return std::nullopt;
  std::vector<Step> steps{rows.step(RowStage::totals)};
  if (sums) steps.push_back(rows.finish(true));
  steps.push_back(rows.finish(false));
  steps.push_back(rows.step(RowStage::results));
  Candidate out;
  out.kernel = in_stages;
  out.workspace = workspace;
  out.seconds = memory_bound_seconds(bytes_of(rows, true) + bytes_of(rows, false), rows.device) /
                    rows.busy(rows.clusters() * rows.parts()) +
                static_cast<double>(steps.size() - 1) * launch_seconds;
  out.made = Proposal{std::move(steps), workspace};
  return out;
}

// The gradient of pixels that one block's registers hold: x and dy are read once.
std::optional<Candidate> with_sums_of_channels(const NormalizationRows& whole) {
  const NormalizationProblem& problem = whole.problem;
  if (problem.over != NormalizationOver::pixel || !is_backward(problem.pass) || !problem.affine ||
      problem.dims[0] == 0)
    return std::nullopt;
  const NormalizationRows rows(problem, whole.device, RowRoad::columns);
  const std::size_t workspace = rows.workspace();
  if (!rows.layout.held || workspace > most_workspace) return std::nullopt;
  Candidate out;
  out.kernel = with_columns;
  out.workspace = workspace;
  out.seconds = memory_bound_seconds(bytes_of(rows, false), rows.device) / rows.busy(rows.parts()) +
                launch_seconds;
  out.made = Proposal{{rows.gradient(), rows.finish(true)}, workspace};
  return out;
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
    return Refusal{cat(problem.statistics() * problem.dims[0], " rows need ", rows.clusters(),
                       " clusters of ", rows.parts(), " thread blocks; a launch has at most ",
                       limit32, " blocks")};
  std::vector<Candidate> candidates;
  const auto add = [&](ChannelSums sums) {
    if (problem.dims[0] > 0 || sums.steps.empty()) sums.steps.push_back(rows.step());
    Candidate one;
    one.kernel = sums.kernel;
    one.seconds = seconds_of_rows(rows) + sums.seconds;
    one.workspace = sums.workspace;
    one.made = Proposal{std::move(sums.steps), sums.workspace};
    candidates.push_back(std::move(one));
  };
  if (is_backward(problem.pass) && problem.affine) {
    const NormalizationPasses passes(problem, device);
    if (const Refusal refusal = passes.refusal()) return refusal;
    for (ChannelSums& sums : channel_sums(passes, bytes_of(rows, true))) add(std::move(sums));
  } else {
    add({});
  }
  for (std::optional<Candidate> more : {staged(rows), with_sums_of_channels(rows)})
    if (more) candidates.push_back(std::move(*more));
  return candidates;
}

Proposal NormalizationRowsEngine::make(const Problem&, const DeviceDescription&,
                                       Candidate candidate) const {
  return std::move(candidate.made).value();
}

}  // namespace kiln
