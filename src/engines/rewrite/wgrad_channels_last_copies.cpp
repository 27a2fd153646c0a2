#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/loops.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/rewrite/channels_last_copies.hpp"
#include "engines/rewrite/chunks.hpp"
#include "engines/rewrite/slices.hpp"
#include "problem/pointwise.hpp"

namespace kiln {
namespace {

using Result = RelayoutRewrite::Result;

std::size_t sums_bytes(const ConvolutionProblem& problem) {
  return static_cast<std::size_t>(problem.out_channels * problem.group_in() * problem.taps()) *
         sizeof(float);
}

// The stride from one tap of dw to the next, in elements (0 if there is one tap); none if taps are
// not equally far apart.
std::optional<std::int64_t> tap_stride(const ConvolutionProblem& problem) {
  std::int64_t first = 0, next = 0;
  for (const int i : {2, 1, 0}) {
    const std::int64_t stride = problem.w_strides[2 + i];
    if (problem.filter[i] == 1) continue;
    if (first == 0) first = next = stride;
    if (stride != next) return std::nullopt;
    next *= problem.filter[i];
  }
  return first;
}

// dw, or its sums, as a tensor {1, output channels, taps, channels of a group}. filter, tap,
// channel: strides, in elements.
Tensor filter_tensor(const ConvolutionProblem& problem, DataType type, std::int64_t filter,
                     std::int64_t tap, std::int64_t channel) {
  Tensor tensor;
  tensor.type = type;
  tensor.rank = 4;
  tensor.dims = {1, problem.out_channels, problem.taps(), problem.group_in()};
  tensor.strides = {1, filter, tap, channel};
  for (int i = 1; i < 4; ++i) {
    tensor.strides[i] = std::max<std::int64_t>(tensor.strides[i], 1);
    tensor.strides[0] += (tensor.dims[i] - 1) * tensor.strides[i];
  }
  return tensor;
}

// The step dw = alpha * sums + beta * dw, which is chosen as any other transform.
struct Finish {
  Problem transform;
  double seconds;  // estimated
};
// channels: of each tap in the sums.
Finish finish_of(const ConvolutionProblem& problem, std::int64_t channels,
                 const InnerChoice& inner) {
  const Tensor sums =
                   filter_tensor(problem, KILN_DATA_FLOAT, problem.taps() * channels, channels, 1),
               result = filter_tensor(problem, problem.w_type, problem.w_strides[0],
                                      tap_stride(problem).value(), problem.w_strides[1]);
  Problem transform = make_transform(sums, result);
  const double seconds = inner.estimate(transform, {}).seconds;
  return {std::move(transform), seconds};
}

void append_finish(StepList& steps, const Finish& finish, const InnerChoice& inner) {
  constexpr std::uint8_t dw = 2;
  Proposal proposal = inner.choose(finish.transform, {});
  for (LaunchSpec::Patch& patch : proposal.first().launch.patches)
    if (patch.hole == LaunchSpec::Hole::operand) patch.operand = patch.operand == 0 ? 0 : dw;
  append_relayout(steps, proposal, {.operands = {{.in_workspace = true}, {}, {}}});
}

std::vector<const char*> copied_of(const RelayoutProblem& problem, bool sums) {
  constexpr const char* names[] = {"x", "dy"};
  std::vector<const char*> copied;
  for (const RelayoutTensor& tensor : problem.tensors) copied.push_back(names[tensor.operand]);
  if (sums)
    copied.push_back("dw");
  else if (!problem.once.empty() && !problem.padded)
    copied.push_back("16-bit dw");
  return copied;
}

// The copies that precede chunk `number`. The first chunk's include a padded dw, because beta may
// scale it.
std::vector<RelayoutMove> moves_of(const RelayoutProblem& problem, const ChunkLayout& layout,
                                   std::int64_t number) {
  const RelayoutChunk chunk = chunk_of(layout, number);
  std::vector<RelayoutMove> moves;
  for (const RelayoutTensor& tensor : problem.tensors)
    if (!tensor.already_copied)
      moves.push_back({.tensor = &tensor, .in = problem.range(tensor, chunk)});
  if (number == 0)
    for (const RelayoutTensor& dw : problem.once)
      moves.push_back({.tensor = &dw, .in = whole_images(dw, dw.images), .beta_only = true});
  return moves;
}

// The copies that follow the last chunk: a padded dw goes back to the caller's tensor.
std::vector<RelayoutMove> results_of(const RelayoutProblem& problem) {
  std::vector<RelayoutMove> moves;
  for (const RelayoutTensor& dw : problem.once)
    moves.push_back({.tensor = &dw, .out = whole_images(dw, dw.images)});
  return moves;
}

// Names of copies for people.
struct Named {
  const char* engine;
  std::string tile{};
};

void append_copies(StepList& to, std::span<const RelayoutMove> moves, const Named& named) {
  if (!moves.empty()) to.steps.push_back(copies_step(moves, named.engine, named.tile));
}

// The time of all chunks' copies and of those after the last chunk.
double all_copies_seconds(const RelayoutProblem& problem, const ChunkLayout& layout,
                          const DeviceDescription& device) {
  const auto seconds_of = [&](std::span<const RelayoutMove> moves) {
    return moves.empty() ? 0 : copies_seconds(moves, device);
  };
  return sum_of_chunks(
             layout,
             [&](std::int64_t number) { return seconds_of(moves_of(problem, layout, number)); }) +
         seconds_of(results_of(problem));
}

// A chunk that adds to the sums of those before it loads them at its end: a thread loads and stores
// some fifty of them in turn, and waits for L2 each time. The estimates of the engines, of dw that
// is only stored, do not include it. Seconds; H200: 13 to 32 us in six layers, by
// what their estimates lacked.
constexpr double adding_seconds = 1.5e-5;

// Chunks that any engine computes. With `finish`, they add up f32 sums in the workspace, and that
// step scales and stores them; otherwise they add to dw or to its padded copy.
Result in_chunks(RelayoutProblem& relayout, const ChunkDivision& division,
                 const std::optional<Finish>& finish, std::size_t budget, const InnerChoice& inner,
                 const char* engine, bool with_steps) {
  const bool sums = finish.has_value();
  const ChunkLayout layout = lay_copies(relayout, sums ? sums_bytes(relayout.inner) : 0, division);
  ConvolutionProblem inner_problem = relayout.inner;
  if (sums) {
    inner_problem.w_type = KILN_DATA_FLOAT;
    inner_problem.w_strides = dense_operand_strides(KILN_TENSOR_NHWC, inner_problem.w_dims());
  }
  Result result;
  std::size_t own = 0;  // workspace of the inner proposals
  ChunkChoices choices(inner_problem, relayout.cut, budget - layout.workspace, inner,
                       relayout.engine);
  result.seconds = sum_of_chunks(layout, [&](std::int64_t number) {
    const RelayoutChunk chunk = chunk_of(layout, number);
    own = std::max(own, choices.workspace(chunk));
    return choices.seconds(chunk) + (number > 0 ? adding_seconds : 0);
  });
  result.seconds += all_copies_seconds(relayout, layout, inner.device());
  if (finish) result.seconds += finish->seconds;
  result.seconds *= margin_of(layout);
  if (with_steps) {
    const Named named{engine, relayout_tile(relayout, layout, copied_of(relayout, sums),
                                            choices.proposal(chunk_of(layout, 0)), budget)};
    StepList steps = steps_of_chunks(layout, [&](std::int64_t number) {
      StepList copies, products;
      append_copies(copies, moves_of(relayout, layout, number), named);
      RelayoutPlaces places = places_of(relayout, layout, number);
      if (sums) places.operands.back() = {.in_workspace = true, .first = 0};
      append_relayout(products, choices.proposal(chunk_of(layout, number)), places);
      if (sums) set_scalar(products.steps, LaunchSpec::Hole::alpha, 1);
      if (sums || number > 0)
        set_scalar(products.steps, LaunchSpec::Hole::beta, number > 0 ? 1 : 0);
      append(copies, std::move(products));
      return copies;
    });
    if (finish) append_finish(steps, *finish, inner);
    append_copies(steps, results_of(relayout), named);
    result.proposal = Proposal(std::move(steps), 0);
  }
  result.proposal.workspace = layout.workspace + own;
  return result;
}

// Chunks of an engine that continues sums. Its blocks' sums stay in the workspace from chunk to
// chunk, and only the last chunk is followed by the step that adds them up and stores dw. None if
// no such engine takes the chunks, if no tile's sums fit into the workspace, or if the last chunk
// is too small for as many blocks.
std::optional<Result> in_continued_chunks(RelayoutProblem& relayout, const ChunkDivision& division,
                                          std::size_t budget, const InnerChoice& inner,
                                          const char* engine_name, bool with_steps) {
  const ChunkLayout layout = lay_copies(relayout, 0, division);
  const auto part = [&](std::int64_t number) {
    return part_of(relayout.inner, relayout.cut, chunk_of(layout, number));
  };
  const ConvolutionProblem first = part(0), last = part(layout.chunks - 1);
  // A block of the first chunk has at least four steps, and one of the last has to have one.
  if (2 * last.batch * last.out_pixels() < first.batch * first.out_pixels()) return std::nullopt;
  const auto found = inner.continued(first, last, budget - layout.workspace);
  if (!found) return std::nullopt;
  const Engine& engine = *found->engine;
  const Candidate& candidate = found->candidate;

  Result result;
  result.seconds =
      static_cast<double>(layout.chunks) * (candidate.seconds - candidate.finish_seconds) +
      candidate.finish_seconds + all_copies_seconds(relayout, layout, inner.device());
  result.seconds *= margin_of(layout);
  if (with_steps) {
    const auto proposal_of = [&](std::int64_t number) {
      return engine.make(part(number), inner.device(), candidate);
    };
    const Named named{engine_name, relayout_tile(relayout, layout, copied_of(relayout, false),
                                                 proposal_of(0), budget) +
                                       ", sums of all images"};
    StepList steps = steps_of_chunks(layout, [&](std::int64_t number) {
      StepList copies;
      append_copies(copies, moves_of(relayout, layout, number), named);
      Proposal products = proposal_of(number);
      if (number > 0) engine.continue_sums()(products.first());
      if (number + 1 < layout.chunks) products.steps.resize(1);
      append_relayout(copies, products, places_of(relayout, layout, number));
      return copies;
    });
    append_copies(steps, results_of(relayout), named);
    result.proposal = Proposal(std::move(steps), 0);
  }
  result.proposal.workspace = layout.workspace + candidate.workspace;
  return result;
}

}  // namespace

bool WgradChannelsLastCopies::is_for(const Problem& problem) const { return is_wgrad(problem); }

std::span<const RelayoutVariant> WgradChannelsLastCopies::variants() const {
  constexpr std::size_t most = most_workspace;
  static constexpr RelayoutVariant all[] = {
      {most, false, true},
      {most, false, false},
      {most, true, true},
      {most, true, false},
      {.budget = most, .copy_results = false, .copy_dw = true},
      {.budget = most, .copy_results = false, .copy_dy = false, .copy_dw = true},
      {.budget = most, .copy_results = false, .slices = true},
      {.budget = most, .copy_results = false, .copy_dy = false, .slices = true},
      {.budget = most, .copy_results = true, .slices = true},
      {.budget = most, .copy_results = true, .copy_dy = false, .slices = true},
      {.budget = most, .copy_results = false, .copy_dw = true, .slices = true},
      {.budget = most, .copy_results = false, .copy_dy = false, .copy_dw = true, .slices = true},
      {least_relayout_budget, false, true}};
  return all;
}

std::variant<RelayoutProblem, Refusal> WgradChannelsLastCopies::relayout(
    const ConvolutionProblem& problem, const InnerChoice& inner,
    const RelayoutVariant& variant) const {
  return relayout_wgrad(problem, inner.device(), variant.copy_dy,
                        variant.copy_results ? WgradResult::sums
                        : variant.copy_dw    ? WgradResult::copied
                                             : WgradResult::as_it_lies);
}

std::optional<RelayoutRewrite::Result> WgradChannelsLastCopies::in_slices(
    const ConvolutionProblem& problem, const InnerChoice& inner, const RelayoutVariant& variant,
    const RelayoutSlices& slices, Images images, Extent extent) const {
  if (images != Images::all) return std::nullopt;
  const ConvolutionProblem slice = slice_of(problem, slices);
  auto answer = this->relayout(slice, inner, variant);
  if (std::holds_alternative<Refusal>(answer)) return std::nullopt;
  auto& relayout = std::get<RelayoutProblem>(answer);
  relayout.slice = describe(problem, slices);
  const bool sums = variant.copy_results, with_steps = extent == Extent::steps;
  const ChunkDivision whole{.chunks = 1};
  const ChunkLayout layout = lay_copies(relayout, sums ? sums_bytes(relayout.inner) : 0, whole);
  if (layout.workspace > variant.budget) return std::nullopt;
  std::optional<Finish> finish;
  if (sums) finish = finish_of(slice, relayout.inner.group_in(), inner);
  Result result = in_chunks(relayout, whole, finish, variant.budget, inner, name(), with_steps);
  const std::vector<RelayoutMove> first = moves_of(relayout, layout, 0);
  for (RelayoutTensor& tensor : relayout.tensors)
    tensor.already_copied = is_shared(problem, slices, tensor.operand);
  const std::vector<RelayoutMove> others = moves_of(relayout, layout, 0);
  repeat_slices(result.proposal, result.seconds, problem, slices, {first, others, name()},
                inner.device());
  return result;
}

std::variant<RelayoutRewrite::Result, Refusal> WgradChannelsLastCopies::estimate_or_build(
    const ConvolutionProblem& problem, const InnerChoice& inner, const RelayoutVariant& variant,
    Extent extent) const {
  const bool sums = variant.copy_results;
  if (sums && !tap_stride(problem))
    return Refusal{
        "the depth, height and width strides of dw are not one stride times the taps inside, as in "
        "channels-first and channels-last layout"};
  auto answer = this->relayout(problem, inner, variant);
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  auto& relayout = std::get<RelayoutProblem>(answer);
  const std::size_t kept = sums ? sums_bytes(relayout.inner) : 0;
  auto divisions = divisions_of(relayout, kept, variant.budget);
  if (!variant.slices && std::holds_alternative<Refusal>(divisions) && relayout.cut_inside_planes())
    divisions = divisions_of(relayout, kept, variant.budget);
  auto* const chunks = std::get_if<std::vector<ChunkDivision>>(&divisions);
  if (variant.slices) {
    if (chunks == nullptr || chunks->front().chunks != 1)
      return sliced(problem, inner, variant, extent);
    return Refusal{"the copies of all images fit into the workspace without slices"};
  }
  if (chunks == nullptr) return std::move(std::get<Refusal>(divisions));
  std::optional<Finish> finish;
  if (sums) finish = finish_of(problem, relayout.inner.group_in(), inner);
  std::optional<Result> best;
  ChunkDivision best_division;
  bool best_continued = false;
  const auto in = [&](const ChunkDivision& division, bool continued,
                      bool with_steps) -> std::optional<Result> {
    if (continued)
      return in_continued_chunks(relayout, division, variant.budget, inner, name(), with_steps);
    return in_chunks(relayout, division, finish, variant.budget, inner, name(), with_steps);
  };
  const auto add = [&](const ChunkDivision& division, bool continued) {
    auto result = in(division, continued, false);
    if (result && (!best || result->seconds < best->seconds))
      best = std::move(result), best_division = division, best_continued = continued;
  };
  for (const ChunkDivision& division : *chunks) {
    // Sums of several chunks must not be rounded to 16 bits after each.
    if (sums || division.chunks == 1 || problem.w_type == KILN_DATA_FLOAT) add(division, false);
    if (!sums) add(division, true);
  }
  if (!best)
    return Refusal{
        "the copies of all images do not fit into the workspace at once, and sums of several "
        "chunks of images need data in f32 or wgrad_dense_nhwc_wgmma"};
  if (extent == Extent::estimate) return std::move(*best);
  return std::move(*in(best_division, best_continued, true));
}

}  // namespace kiln
