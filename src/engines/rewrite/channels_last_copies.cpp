#include "engines/rewrite/channels_last_copies.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "codegen/loops.hpp"
#include "engines/conv/gather.hpp"
#include "engines/rewrite/chunks.hpp"

namespace kiln {
namespace {

// The copies of one launch: results of the chunk `before` to the caller's tensors, and sources of
// the chunk `next` to the workspace.
std::vector<RelayoutMove> moves_of(const RelayoutProblem& problem, const RelayoutChunk& before,
                                   const RelayoutChunk& next, bool first) {
  std::vector<RelayoutMove> moves;
  for (const RelayoutTensor& tensor : problem.tensors) {
    const bool source = tensor.role == RelayoutTensor::Role::source,
               result = tensor.role == RelayoutTensor::Role::result;
    RelayoutMove move{.tensor = &tensor};
    if (tensor.already_copied) continue;
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
    for (const RelayoutTensor& tensor : problem.once)
      moves.push_back({.tensor = &tensor, .in = whole_images(tensor, tensor.copied_images)});
  return moves;
}

std::vector<const char*> copied_of(const RelayoutProblem& problem) {
  std::vector<const char*> names;
  for (const RelayoutTensor& tensor : problem.tensors)
    if (tensor.role != RelayoutTensor::Role::residual)
      names.push_back(tensor.role == RelayoutTensor::Role::source ? "input" : "output");
  return names;
}

RelayoutRewrite::Result in_chunks(const RelayoutProblem& problem, const ChunkLayout& layout,
                                  const RelayoutVariant& variant, const InnerChoice& inner,
                                  const char* engine, bool with_steps) {
  RelayoutRewrite::Result result;
  // What is copied before chunk `next`, or after the last one.
  const auto moves_before = [&](std::int64_t next) {
    return moves_of(problem, chunk_of(layout, next - 1), chunk_of(layout, next), next == 0);
  };
  const auto copies_before = [&](std::int64_t next) {
    const std::vector<RelayoutMove> moves = moves_before(next);
    return moves.empty() ? 0 : copies_seconds(moves, inner.device());
  };
  ChunkChoices choices(problem.inner, problem.cut, variant.budget - layout.workspace, inner,
                       problem.engine);
  std::size_t own = 0;  // workspace of the inner proposals
  result.seconds = sum_of_chunks(layout, [&](std::int64_t number) {
    const RelayoutChunk chunk = chunk_of(layout, number);
    own = std::max(own, choices.workspace(chunk));
    return copies_before(number) + choices.seconds(chunk);
  });
  result.seconds = (result.seconds + copies_before(layout.chunks)) * margin_of(layout);
  if (with_steps) {
    const std::string tile = relayout_tile(problem, layout, copied_of(problem),
                                           choices.proposal(chunk_of(layout, 0)), variant.budget);
    const auto copies = [&](std::int64_t next) {
      StepList steps;
      if (const std::vector<RelayoutMove> moves = moves_before(next); !moves.empty())
        steps.steps.push_back(copies_step(moves, engine, tile));
      return steps;
    };
    StepList steps = steps_of_chunks(layout, [&](std::int64_t number) {
      StepList chunk = copies(number);
      append_relayout(chunk, choices.proposal(chunk_of(layout, number)),
                      places_of(problem, layout, number));
      return chunk;
    });
    append(steps, copies(layout.chunks));
    result.proposal = Proposal(std::move(steps), 0);
  }
  result.proposal.workspace = layout.workspace + own;
  return result;
}

// In the chunks that are estimated best; `first` gets what the steps begin with. Refused if no
// copies fit into the workspace.
std::variant<RelayoutRewrite::Result, Refusal> in_best_chunks(
    RelayoutProblem& problem, const RelayoutVariant& variant, const InnerChoice& inner,
    const char* engine, bool with_steps, std::vector<RelayoutMove>* first = nullptr) {
  auto divisions = divisions_of(problem, 0, variant.budget);
  if (std::holds_alternative<Refusal>(divisions) && problem.cut_inside_planes())
    divisions = divisions_of(problem, 0, variant.budget);
  if (auto* refusal = std::get_if<Refusal>(&divisions)) return std::move(*refusal);
  std::optional<RelayoutRewrite::Result> best;
  ChunkDivision best_division;
  for (const ChunkDivision& division : std::get<std::vector<ChunkDivision>>(divisions)) {
    RelayoutRewrite::Result result =
        in_chunks(problem, lay_copies(problem, 0, division), variant, inner, engine, false);
    if (!best || result.seconds < best->seconds) best = std::move(result), best_division = division;
  }
  const ChunkLayout layout = lay_copies(problem, 0, best_division);
  if (first != nullptr) *first = moves_of(problem, {}, chunk_of(layout, 0), true);
  if (!with_steps) return std::move(*best);
  return in_chunks(problem, layout, variant, inner, engine, true);
}

}  // namespace

std::variant<std::vector<Candidate>, Refusal> RelayoutRewrite::candidates(
    const ConvolutionProblem& problem, const InnerChoice& inner) const {
  std::vector<Candidate> candidates;
  Refusal first;
  const std::span<const RelayoutVariant> all = variants();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const RelayoutVariant& variant = all[i];
    // A larger budget with the same choices gave a candidate that fits into this budget.
    if (std::ranges::any_of(candidates, [&](const Candidate& candidate) {
          const RelayoutVariant& before = all[static_cast<std::size_t>(candidate.kernel)];
          return before.copy_results == variant.copy_results && before.copy_dy == variant.copy_dy &&
                 before.copy_dw == variant.copy_dw && before.slices == variant.slices &&
                 candidate.workspace <= variant.budget;
        }))
      continue;
    auto answer = estimate_or_build(problem, inner, variant, Extent::estimate);
    if (auto* refusal = std::get_if<Refusal>(&answer)) {
      if (first.reason.empty()) first = std::move(*refusal);
      continue;
    }
    const Result& result = std::get<Result>(answer);
    Candidate candidate;
    candidate.kernel = static_cast<int>(i);
    candidate.seconds = result.seconds;
    candidate.workspace = result.proposal.workspace;
    candidates.push_back(std::move(candidate));
  }
  if (candidates.empty()) return first;
  return candidates;
}

std::variant<RelayoutRewrite::Result, Refusal> RelayoutRewrite::sliced(
    const ConvolutionProblem& problem, const InnerChoice& inner, const RelayoutVariant& variant,
    Extent extent) const {
  // The fewest slices that fit, and the next more: these leave more workspace to partial sums.
  constexpr int tried = 2;
  std::optional<Result> best;
  RelayoutSlices best_slices;
  Images best_images = Images::all;
  // Of the tensor that takes more of the workspace.
  const bool of_x = !variant.copy_dy || problem.in_channels * problem.in_pixels() >=
                                            problem.out_channels * problem.out_pixels();
  for (const Images images : {Images::all, Images::in_chunks}) {
    if (best) break;
    best_images = images;
    int fit = 0;
    for (const RelayoutSlices& slices : slices_of(problem, of_x)) {
      if (fit == tried) break;
      auto result = in_slices(problem, inner, variant, slices, images, Extent::estimate);
      if (!result) continue;
      ++fit;
      if (!best || result->seconds < best->seconds) best = std::move(result), best_slices = slices;
    }
  }
  if (!best)
    return Refusal{
        "no equal slices of the channels, of multiples of 16 bytes, have copies that fit into the "
        "workspace"};
  if (extent == Extent::estimate) return std::move(*best);
  return std::move(*in_slices(problem, inner, variant, best_slices, best_images, Extent::steps));
}

Proposal RelayoutRewrite::make(const ConvolutionProblem& problem, const InnerChoice& inner,
                               const Candidate& candidate) const {
  const RelayoutVariant& variant = variants()[static_cast<std::size_t>(candidate.kernel)];
  return std::get<Result>(propose(problem, inner, variant)).proposal;
}

std::span<const RelayoutVariant> ChannelsLastCopies::variants() const {
  static constexpr RelayoutVariant all[] = {
      {most_workspace, false},
      {most_workspace, true},
      {.budget = most_workspace, .copy_results = false, .slices = true},
      {least_relayout_budget, false}};
  return all;
}

bool ChannelsLastCopies::is_for(const Problem& problem) const { return is_gather(problem); }

std::variant<RelayoutProblem, Refusal> ChannelsLastCopies::relayout(
    const ConvolutionProblem& problem, const InnerChoice& inner,
    const RelayoutVariant& variant) const {
  return relayout_gather(problem, inner.device(), variant.copy_results);
}

std::optional<RelayoutRewrite::Result> ChannelsLastCopies::in_slices(
    const ConvolutionProblem& problem, const InnerChoice& inner, const RelayoutVariant& variant,
    const RelayoutSlices& slices, Images images, Extent extent) const {
  auto answer = this->relayout(slice_of(problem, slices), inner, variant);
  if (std::holds_alternative<Refusal>(answer)) return std::nullopt;
  auto& relayout = std::get<RelayoutProblem>(answer);
  relayout.slice = describe(problem, slices);
  if (images == Images::in_chunks) {  // the input is copied anew for every slice
    std::vector<RelayoutMove> first;
    auto chunks = in_best_chunks(relayout, variant, inner, name(), extent == Extent::steps, &first);
    if (std::holds_alternative<Refusal>(chunks)) return std::nullopt;
    Result& result = std::get<Result>(chunks);
    repeat_slices(result.proposal, result.seconds, problem, slices, {first, first, name()},
                  inner.device());
    return std::move(result);
  }
  const ChunkLayout layout = lay_copies(relayout, 0, {.chunks = 1});
  if (layout.workspace > variant.budget) return std::nullopt;
  Result result = in_chunks(relayout, layout, variant, inner, name(), extent == Extent::steps);
  const auto moves = [&] { return moves_of(relayout, {}, chunk_of(layout, 0), true); };
  const std::vector<RelayoutMove> first = moves();
  for (RelayoutTensor& tensor : relayout.tensors)
    tensor.already_copied = is_shared(problem, slices, tensor.operand);
  const std::vector<RelayoutMove> others = moves();
  repeat_slices(result.proposal, result.seconds, problem, slices, {first, others, name()},
                inner.device());
  return result;
}

std::variant<RelayoutRewrite::Result, Refusal> ChannelsLastCopies::estimate_or_build(
    const ConvolutionProblem& problem, const InnerChoice& inner, const RelayoutVariant& variant,
    Extent extent) const {
  auto answer = this->relayout(problem, inner, variant);
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  auto& relayout = std::get<RelayoutProblem>(answer);
  if (!variant.slices)
    return in_best_chunks(relayout, variant, inner, name(), extent == Extent::steps);
  if (std::holds_alternative<Refusal>(divisions_of(relayout, 0, variant.budget)))
    return sliced(problem, inner, variant, extent);
  return Refusal{"the copies of an image, or of a part of one, fit into the workspace"};
}

}  // namespace kiln
