#include "engines/conv/relaid/channels_last_copies.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "engines/conv/gather.hpp"
#include "engines/conv/relaid/chunks.hpp"

namespace kiln {
namespace {

// The copies of one launch: results of the chunk `before` to the caller's tensors, and sources of
// the chunk `next` to the workspace.
std::vector<RelaidMove> moves_of(const RelaidProblem& problem, const RelaidChunk& before,
                                 const RelaidChunk& next, bool first) {
  std::vector<RelaidMove> moves;
  for (const RelaidTensor& tensor : problem.tensors) {
    const bool source = tensor.role == RelaidTensor::Role::source,
               result = tensor.role == RelaidTensor::Role::result;
    RelaidMove move{.tensor = &tensor};
    if (result) move.out = problem.range(tensor, before);
    // beta scales z if there is one, else the previous results. A tile of these is copied to the
    // workspace by the block that has copied the tile's last results out, which they overwrite.
    if (!result || !problem.inner.epilogue.residual) {
      move.in = problem.range(tensor, next);
      move.beta_only = !source;
    }
    if (move.in.images + move.out.images > 0) moves.push_back(move);
  }
  if (first)
    for (const RelaidTensor& tensor : problem.once)
      moves.push_back({.tensor = &tensor, .in = whole_images(tensor, tensor.copied_images)});
  return moves;
}

std::vector<const char*> copied_of(const RelaidProblem& problem) {
  std::vector<const char*> names;
  for (const RelaidTensor& tensor : problem.tensors)
    if (tensor.role != RelaidTensor::Role::residual)
      names.push_back(tensor.role == RelaidTensor::Role::source ? "input" : "output");
  return names;
}

RelaidEngine::Made in_chunks(const RelaidProblem& problem, const RelaidLayout& layout,
                             const RelaidEngine::Terms& terms, const DeviceDescription& device,
                             const char* engine, bool with_steps) {
  RelaidEngine::Made made;
  std::vector<Step> steps;
  std::size_t own = 0;  // workspace of the inner proposals
  std::string tile;
  const auto copy = [&](std::int64_t next) {
    const std::vector<RelaidMove> moves =
        moves_of(problem, chunk_of(layout, next - 1), chunk_of(layout, next), next == 0);
    if (moves.empty()) return;
    if (with_steps) steps.push_back(copies_step(moves, engine, tile));
    made.seconds += copies_seconds(moves, device);
  };
  InnerChoices inner(problem.inner, problem.cut, terms.budget - layout.workspace, device,
                     problem.engine);
  for (std::int64_t i = 0; i < layout.chunks; ++i) {
    const RelaidChunk chunk = chunk_of(layout, i);
    if (with_steps && i == 0)
      tile = relaid_tile(problem, layout, copied_of(problem), inner.proposal(chunk), terms.budget);
    copy(i);
    made.seconds += inner.seconds(chunk);
    own = std::max(own, inner.workspace(chunk));
    if (with_steps) append_relaid(steps, inner.proposal(chunk), places_of(problem, layout, i));
  }
  copy(layout.chunks);
  made.seconds *= margin_of(layout);
  if (with_steps) made.proposal = proposal_of(std::move(steps), 0);
  made.proposal.workspace = layout.workspace + own;
  return made;
}

}  // namespace

std::variant<std::vector<Candidate>, Refusal> RelaidEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  std::vector<Candidate> candidates;
  Refusal first;
  const std::span<const Terms> all = all_terms();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Terms& terms = all[i];
    // A larger budget with the same choices gave a candidate that fits into this budget.
    if (std::ranges::any_of(candidates, [&](const Candidate& candidate) {
          const Terms& before = all[static_cast<std::size_t>(candidate.kernel)];
          return before.copy_results == terms.copy_results && before.copy_dy == terms.copy_dy &&
                 before.copy_dw == terms.copy_dw && before.slices == terms.slices &&
                 candidate.workspace <= terms.budget;
        }))
      continue;
    auto answer = work_out(std::get<ConvolutionProblem>(any), device, terms, Extent::estimate);
    if (auto* refusal = std::get_if<Refusal>(&answer)) {
      if (first.reason.empty()) first = std::move(*refusal);
      continue;
    }
    const Made& made = std::get<Made>(answer);
    Candidate candidate;
    candidate.kernel = static_cast<int>(i);
    candidate.seconds = made.seconds;
    candidate.workspace = made.proposal.workspace;
    candidates.push_back(std::move(candidate));
  }
  if (candidates.empty()) return first;
  return candidates;
}

Proposal RelaidEngine::make(const Problem& any, const DeviceDescription& device,
                            Candidate candidate) const {
  const Terms& terms = all_terms()[static_cast<std::size_t>(candidate.kernel)];
  return std::get<Made>(propose(std::get<ConvolutionProblem>(any), device, terms)).proposal;
}

std::span<const RelaidEngine::Terms> ChannelsLastCopiesEngine::all_terms() const {
  static constexpr Terms all[] = {
      {most_workspace, false}, {most_workspace, true}, {least_relaid_budget, false}};
  return all;
}

bool ChannelsLastCopiesEngine::is_for(const Problem& problem) const { return is_gather(problem); }

std::variant<RelaidProblem, Refusal> ChannelsLastCopiesEngine::relaid(
    const ConvolutionProblem& problem, const DeviceDescription& device, const Terms& terms) const {
  return relaid_gather(problem, device, terms.copy_results);
}

std::variant<RelaidEngine::Made, Refusal> ChannelsLastCopiesEngine::work_out(
    const ConvolutionProblem& problem, const DeviceDescription& device, const Terms& terms,
    Extent extent) const {
  auto answer = this->relaid(problem, device, terms);
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  auto& relaid = std::get<RelaidProblem>(answer);
  const auto divisions = divisions_of(relaid, 0, terms.budget);
  if (const auto* refusal = std::get_if<Refusal>(&divisions)) return *refusal;
  std::optional<Made> best;
  RelaidDivision best_division;
  for (const RelaidDivision& division : std::get<std::vector<RelaidDivision>>(divisions)) {
    Made made = in_chunks(relaid, lay_copies(relaid, 0, division), terms, device, name(), false);
    if (!best || made.seconds < best->seconds) best = std::move(made), best_division = division;
  }
  if (extent == Extent::estimate) return std::move(*best);
  return in_chunks(relaid, lay_copies(relaid, 0, best_division), terms, device, name(), true);
}

}  // namespace kiln
