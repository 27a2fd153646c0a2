#include "engines/rewrite/channels_last_copies.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "engines/conv/gather.hpp"
#include "engines/rewrite/chunks.hpp"

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
    if (tensor.kept) continue;
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

RelayoutRewrite::Made in_chunks(const RelaidProblem& problem, const RelaidLayout& layout,
                                const RelayoutRewrite::Terms& terms, const InnerChoice& inner,
                                const char* engine, bool with_steps) {
  RelayoutRewrite::Made made;
  std::vector<Step> steps;
  std::size_t own = 0;  // workspace of the inner proposals
  std::string tile;
  // What is copied before chunk `next`, or after the last one.
  const auto moves_before = [&](std::int64_t next) {
    return moves_of(problem, chunk_of(layout, next - 1), chunk_of(layout, next), next == 0);
  };
  const auto add_seconds = [&](std::int64_t next, std::int64_t count) {
    const std::vector<RelaidMove> moves = moves_before(next);
    if (!moves.empty())
      made.seconds += static_cast<double>(count) * copies_seconds(moves, inner.device());
  };
  const auto add_copies = [&](std::int64_t next) {
    const std::vector<RelaidMove> moves = moves_before(next);
    if (!moves.empty()) steps.push_back(copies_step(moves, engine, tile));
  };
  ChunkChoices choices(problem.inner, problem.cut, terms.budget - layout.workspace, inner,
                       problem.engine);
  for (const auto& [number, count] : alike_chunks(layout)) {
    const RelaidChunk chunk = chunk_of(layout, number);
    add_seconds(number, count);
    made.seconds += static_cast<double>(count) * choices.seconds(chunk);
    own = std::max(own, choices.workspace(chunk));
  }
  add_seconds(layout.chunks, 1);
  made.seconds *= margin_of(layout);
  if (with_steps) {
    tile = relaid_tile(problem, layout, copied_of(problem), choices.proposal(chunk_of(layout, 0)),
                       terms.budget);
    for (std::int64_t i = 0; i < layout.chunks; ++i) {
      add_copies(i);
      append_relaid(steps, choices.proposal(chunk_of(layout, i)), places_of(problem, layout, i));
    }
    add_copies(layout.chunks);
  }
  if (with_steps) made.proposal = Proposal(std::move(steps), 0);
  made.proposal.workspace = layout.workspace + own;
  return made;
}

}  // namespace

std::variant<std::vector<Candidate>, Refusal> RelayoutRewrite::candidates(
    const ConvolutionProblem& problem, const InnerChoice& inner) const {
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
    auto answer = work_out(problem, inner, terms, Extent::estimate);
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

std::variant<RelayoutRewrite::Made, Refusal> RelayoutRewrite::sliced(
    const ConvolutionProblem& problem, const InnerChoice& inner, const Terms& terms,
    Extent extent) const {
  // The fewest slices that fit, and the next more: these leave more workspace to partial sums.
  constexpr int tried = 2;
  std::optional<Made> best;
  RelaidSlices best_slices;
  int fit = 0;
  // Of the tensor that takes more of the workspace.
  const bool of_x = !terms.copy_dy || problem.in_channels * problem.in_pixels() >=
                                          problem.out_channels * problem.out_pixels();
  for (const RelaidSlices& slices : slices_of(problem, of_x)) {
    if (fit == tried) break;
    auto made = in_slices(problem, inner, terms, slices, Extent::estimate);
    if (!made) continue;
    ++fit;
    if (!best || made->seconds < best->seconds) best = std::move(made), best_slices = slices;
  }
  if (!best)
    return Refusal{
        "no equal slices of the channels, of multiples of 16 bytes, have copies that fit into the "
        "workspace"};
  if (extent == Extent::estimate) return std::move(*best);
  return std::move(*in_slices(problem, inner, terms, best_slices, Extent::steps));
}

Proposal RelayoutRewrite::make(const ConvolutionProblem& problem, const InnerChoice& inner,
                               const Candidate& candidate) const {
  const Terms& terms = all_terms()[static_cast<std::size_t>(candidate.kernel)];
  return std::get<Made>(propose(problem, inner, terms)).proposal;
}

std::span<const RelayoutRewrite::Terms> ChannelsLastCopies::all_terms() const {
  static constexpr Terms all[] = {{most_workspace, false},
                                  {most_workspace, true},
                                  {.budget = most_workspace, .copy_results = false, .slices = true},
                                  {least_relaid_budget, false}};
  return all;
}

bool ChannelsLastCopies::is_for(const Problem& problem) const { return is_gather(problem); }

std::variant<RelaidProblem, Refusal> ChannelsLastCopies::relaid(const ConvolutionProblem& problem,
                                                                const InnerChoice& inner,
                                                                const Terms& terms) const {
  return relaid_gather(problem, inner.device(), terms.copy_results);
}

std::optional<RelayoutRewrite::Made> ChannelsLastCopies::in_slices(
    const ConvolutionProblem& problem, const InnerChoice& inner, const Terms& terms,
    const RelaidSlices& slices, Extent extent) const {
  auto answer = this->relaid(slice_of(problem, slices), inner, terms);
  if (std::holds_alternative<Refusal>(answer)) return std::nullopt;
  auto& relaid = std::get<RelaidProblem>(answer);
  relaid.slice = describe(problem, slices);
  const RelaidLayout layout = lay_copies(relaid, 0, {.chunks = 1});
  if (layout.workspace > terms.budget) return std::nullopt;
  Made made = in_chunks(relaid, layout, terms, inner, name(), extent == Extent::steps);
  const auto moves = [&] { return moves_of(relaid, {}, chunk_of(layout, 0), true); };
  const std::vector<RelaidMove> first = moves();
  for (RelaidTensor& tensor : relaid.tensors)
    tensor.kept = is_shared(problem, slices, tensor.operand);
  const std::vector<RelaidMove> others = moves();
  repeat_slices(made.proposal, made.seconds, problem, slices, {first, others, name()},
                inner.device());
  return made;
}

std::variant<RelayoutRewrite::Made, Refusal> ChannelsLastCopies::work_out(
    const ConvolutionProblem& problem, const InnerChoice& inner, const Terms& terms,
    Extent extent) const {
  auto answer = this->relaid(problem, inner, terms);
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  auto& relaid = std::get<RelaidProblem>(answer);
  const auto divisions = divisions_of(relaid, 0, terms.budget);
  if (terms.slices) {
    const auto* const chunks = std::get_if<std::vector<RelaidDivision>>(&divisions);
    if (chunks == nullptr) return sliced(problem, inner, terms, extent);
    return Refusal{"the copies of an image, or of a part of one, fit into the workspace"};
  }
  if (const auto* refusal = std::get_if<Refusal>(&divisions)) return *refusal;
  std::optional<Made> best;
  RelaidDivision best_division;
  for (const RelaidDivision& division : std::get<std::vector<RelaidDivision>>(divisions)) {
    Made made = in_chunks(relaid, lay_copies(relaid, 0, division), terms, inner, name(), false);
    if (!best || made.seconds < best->seconds) best = std::move(made), best_division = division;
  }
  if (extent == Extent::estimate) return std::move(*best);
  return in_chunks(relaid, lay_copies(relaid, 0, best_division), terms, inner, name(), true);
}

}  // namespace kiln
