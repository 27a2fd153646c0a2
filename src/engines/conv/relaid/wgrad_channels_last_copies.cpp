#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "engines/answers.hpp"
#include "engines/choice.hpp"
#include "engines/conv/dense/wgrad_dense_wgmma.hpp"
#include "engines/conv/relaid/channels_last_copies.hpp"
#include "engines/conv/relaid/chunks.hpp"
#include "engines/conv/wgrad/product.hpp"
#include "engines/cost/dense_cost.hpp"
#include "problem/pointwise.hpp"

namespace kiln {
namespace {

using Made = RelaidEngine::Made;

std::size_t sums_bytes(const ConvolutionProblem& problem) {
  return static_cast<std::size_t>(problem.out_channels * problem.group_in() * problem.taps()) *
         sizeof(float);
}

// {1, filters, taps, channels of a group} of dw, or of the sums.
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

// dw = alpha * sums + beta * dw, by whichever engine transposes them.
Choice finish_of(const ConvolutionProblem& problem, const DeviceDescription& device) {
  const std::int64_t channels = problem.group_in();
  const Tensor sums =
                   filter_tensor(problem, KILN_DATA_FLOAT, problem.taps() * channels, channels, 1),
               result = filter_tensor(problem, problem.w_type, problem.w_strides[0], 1,
                                      problem.w_strides[1]);
  std::vector<EngineRefusal> ignored;
  return choose(make_transform(sums, result), device, {}, ignored, nullptr);
}

void append_finish(std::vector<Step>& steps, Choice finish) {
  constexpr std::uint8_t dw = 2;
  for (LaunchSpec::Patch& patch : finish.proposal.launch.patches)
    if (patch.hole == LaunchSpec::Hole::operand) patch.operand = patch.operand == 0 ? 0 : dw;
  append_relaid(steps, std::move(finish.proposal), {.operands = {{.in_workspace = true}, {}, {}}});
}

const char* copied_of(const RelaidProblem& problem, bool sums) {
  if (problem.as_they_lie.empty()) return sums ? "x, dy and dw" : "x and dy";
  return sums ? "x and dw" : "x";
}

std::vector<RelaidMove> moves_of(const RelaidProblem& relaid, const RelaidChunk& chunk) {
  std::vector<RelaidMove> moves;
  for (const RelaidTensor& tensor : relaid.tensors)
    moves.push_back({.tensor = &tensor, .in_first = chunk.first, .in_images = chunk.images});
  return moves;
}

// Of sums in the workspace, with what finishes them, or in dw itself.
Made in_chunks(RelaidProblem& relaid, const ConvolutionProblem& problem, std::int64_t chunks,
               const std::optional<Choice>& finish, std::size_t budget,
               const DeviceDescription& device, bool with_steps) {
  const bool sums = finish.has_value();
  const RelaidLayout layout = lay_copies(relaid, sums ? sums_bytes(problem) : 0, chunks);
  ConvolutionProblem inner_problem = relaid.inner;
  if (sums) {
    inner_problem.w_type = KILN_DATA_FLOAT;
    inner_problem.w_strides = dense_operand_strides(KILN_TENSOR_NHWC, problem.w_dims());
  }
  Made made;
  std::vector<Step> steps;
  std::size_t own = 0;  // workspace of the inner proposals
  std::string tile;
  InnerChoices inner(inner_problem, budget - layout.workspace, device);
  for (std::int64_t i = 0; i < chunks; ++i) {
    const RelaidChunk chunk = chunk_of(layout, i);
    const std::vector<RelaidMove> moves = moves_of(relaid, chunk);
    made.seconds += copies_seconds(moves, device) + inner.seconds(chunk.images);
    own = std::max(own, inner.workspace(chunk.images));
    if (!with_steps) continue;
    Proposal proposal = inner.proposal(chunk.images);
    if (i == 0) tile = relaid_tile(copied_of(relaid, sums), proposal, budget);
    steps.push_back(copies_step(moves, "wgrad_channels_last_copies", tile));
    std::vector<Step> products;
    RelaidPlaces places = places_of(relaid, layout, i);
    if (sums) places.operands.back() = {.in_workspace = true, .first = 0};
    append_relaid(products, std::move(proposal), places);
    if (sums) set_scalar(products, LaunchSpec::Hole::alpha, 1);
    if (sums || i > 0) set_scalar(products, LaunchSpec::Hole::beta, i > 0 ? 1 : 0);
    std::move(products.begin(), products.end(), std::back_inserter(steps));
  }
  if (finish) {
    made.seconds += finish->seconds;
    if (with_steps) append_finish(steps, *finish);
  }
  if (with_steps) made.proposal = proposal_of(std::move(steps), 0);
  made.proposal.workspace = layout.workspace + own;
  return made;
}

// By the dense engine, whose blocks' sums stay in the workspace from chunk to chunk: the last one
// is followed by the step that adds them up and stores dw.
std::optional<Made> in_continued_chunks(RelaidProblem& relaid, std::int64_t chunks,
                                        std::size_t budget, const DeviceDescription& device,
                                        bool with_steps) {
  const WgradDenseNhwcWgmmaEngine engine;
  const RelaidLayout layout = lay_copies(relaid, 0, chunks);
  ConvolutionProblem part = relaid.inner;
  part.batch = chunk_of(layout, 0).images;
  const auto answer = ask_once(engine, part, device);
  const Estimate* best = nullptr;
  for (const Estimate& each : answer->estimates)
    if (each.workspace > 0 && each.workspace <= budget - layout.workspace &&
        (best == nullptr || each.seconds < best->seconds))
      best = &each;
  if (best == nullptr) return std::nullopt;
  const WgradDenseTile& tile = engine.tiles(part)[static_cast<std::size_t>(best->kernel / 2)];
  const auto groups = static_cast<int>(best->workspace / engine.workspace_bytes(tile, part, 1));

  const double second = dense_wgrad_second_seconds(groups, static_cast<double>(best->workspace));

  Made made;
  std::vector<Step> steps;
  std::string name;
  for (std::int64_t i = 0; i < chunks; ++i) {
    const RelaidChunk chunk = chunk_of(layout, i);
    const std::vector<RelaidMove> moves = moves_of(relaid, chunk);
    made.seconds += copies_seconds(moves, device) + best->seconds - second;
    if (!with_steps) continue;
    part.batch = chunk.images;
    Proposal products = engine.propose(tile, part, device, best->parts, groups);
    if (i == 0)
      name = relaid_tile(copied_of(relaid, false), products, budget) + ", sums of all images";
    if (i > 0) continue_sums(products);
    if (i + 1 < chunks) products.then.clear();
    steps.push_back(copies_step(moves, "wgrad_channels_last_copies", name));
    append_relaid(steps, std::move(products), places_of(relaid, layout, i));
  }
  made.seconds += second;
  if (with_steps) made.proposal = proposal_of(std::move(steps), 0);
  made.proposal.workspace = layout.workspace + best->workspace;
  return made;
}

}  // namespace

bool WgradChannelsLastCopiesEngine::is_for(const Problem& problem) const {
  return is_wgrad(problem);
}

std::span<const RelaidEngine::Terms> WgradChannelsLastCopiesEngine::all_terms() const {
  static constexpr Terms all[] = {{most_workspace, false, true},
                                  {most_workspace, false, false},
                                  {most_workspace, true, true},
                                  {most_workspace, true, false},
                                  {least_relaid_budget, false, true}};
  return all;
}

std::variant<RelaidEngine::Made, Refusal> WgradChannelsLastCopiesEngine::work_out(
    const ConvolutionProblem& problem, const DeviceDescription& device, const Terms& terms,
    Extent extent) const {
  auto answer = relaid_wgrad(problem, device, terms.copy_dy);
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  auto& relaid = std::get<RelaidProblem>(answer);
  const bool sums = terms.copy_results;
  const auto least = least_chunks(relaid, sums ? sums_bytes(problem) : 0, terms.budget);
  if (const auto* refusal = std::get_if<Refusal>(&least)) return *refusal;
  std::optional<Choice> finish;
  if (sums) finish = finish_of(problem, device);
  std::optional<Made> best;
  std::int64_t best_chunks = 0;
  bool best_continued = false;
  const auto in = [&](std::int64_t chunks, bool continued, bool with_steps) -> std::optional<Made> {
    if (continued) return in_continued_chunks(relaid, chunks, terms.budget, device, with_steps);
    return in_chunks(relaid, problem, chunks, finish, terms.budget, device, with_steps);
  };
  const auto add = [&](std::int64_t chunks, bool continued) {
    auto made = in(chunks, continued, false);
    if (made && (!best || made->seconds < best->seconds))
      best = std::move(made), best_chunks = chunks, best_continued = continued;
  };
  for (const std::int64_t chunks :
       numbers_of_chunks(std::get<std::int64_t>(least), problem.batch)) {
    // Sums of several chunks are not rounded to 16 bits.
    if (sums || chunks == 1 || problem.w_type == KILN_DATA_FLOAT) add(chunks, false);
    if (!sums) add(chunks, true);
  }
  if (!best)
    return Refusal{"sums of several chunks of images that are neither f32 nor of the dense engine"};
  if (extent == Extent::estimate) return std::move(*best);
  return std::move(*in(best_chunks, best_continued, true));
}

}  // namespace kiln
