#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "engines/choice.hpp"
#include "engines/conv/relaid/channels_last_copies.hpp"
#include "engines/conv/relaid/chunks.hpp"
#include "engines/conv/wgrad/product.hpp"
#include "problem/pointwise.hpp"

namespace kiln {
namespace {

using Made = RelaidEngine::Made;

bool channels_last(const ConvolutionProblem& problem) {
  return problem.group_in() == 1 || problem.w_strides[1] == 1;
}

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
void append_finish(std::vector<Step>& steps, double& seconds, const ConvolutionProblem& problem,
                   const DeviceDescription& device) {
  constexpr std::uint8_t dw = 2;
  const std::int64_t channels = problem.group_in();
  const Tensor sums =
                   filter_tensor(problem, KILN_DATA_FLOAT, problem.taps() * channels, channels, 1),
               result = filter_tensor(problem, problem.w_type, problem.w_strides[0], 1,
                                      problem.w_strides[1]);
  std::vector<EngineRefusal> ignored;
  Choice finish = choose(make_transform(sums, result), device, {}, ignored, nullptr);
  seconds += finish.seconds;
  for (LaunchSpec::Patch& patch : finish.proposal.launch.patches)
    if (patch.hole == LaunchSpec::Hole::operand) patch.operand = patch.operand == 0 ? 0 : dw;
  append_relaid(steps, std::move(finish.proposal), {.operands = {{.in_workspace = true}, {}, {}}});
}

// Of sums in the workspace, or in dw itself.
Made in_chunks(RelaidProblem& relaid, const ConvolutionProblem& problem, std::int64_t chunks,
               bool sums, std::size_t budget, const DeviceDescription& device) {
  const RelaidLayout layout = lay_copies(relaid, sums ? sums_bytes(problem) : 0, chunks);
  RelaidPlaces places = places_of(relaid, layout, 0);
  ConvolutionProblem inner_problem = relaid.inner;
  if (sums) {
    inner_problem.w_type = KILN_DATA_FLOAT;
    inner_problem.w_strides = dense_operand_strides(KILN_TENSOR_NHWC, problem.w_dims());
    places.operands.back() = {.in_workspace = true, .first = 0};
  }
  Made made;
  std::vector<Step> steps;
  std::size_t own = 0;  // workspace of the inner proposals
  std::string tile;
  for (std::int64_t i = 0; i < chunks; ++i) {
    const RelaidChunk chunk = chunk_of(layout, i);
    Choice inner = choose_inner(inner_problem, chunk.images, budget - layout.workspace, device);
    if (i == 0) tile = relaid_tile("x and dy", inner.proposal, budget);
    std::vector<RelaidMove> moves;
    for (const RelaidTensor& tensor : relaid.tensors)
      moves.push_back({.tensor = &tensor, .in_first = chunk.first, .in_images = chunk.images});
    steps.push_back(copies_step(moves, "wgrad_channels_last_copies", tile));
    made.seconds += copies_seconds(moves, device) + inner.seconds;
    own = std::max(own, inner.proposal.workspace);
    std::vector<Step> products;
    append_relaid(products, std::move(inner.proposal), places);
    if (sums) set_scalar(products, LaunchSpec::Hole::alpha, 1);
    if (sums || i > 0) set_scalar(products, LaunchSpec::Hole::beta, i > 0 ? 1 : 0);
    std::move(products.begin(), products.end(), std::back_inserter(steps));
  }
  if (sums) append_finish(steps, made.seconds, problem, device);
  made.proposal = proposal_of(std::move(steps), layout.workspace + own);
  return made;
}

}  // namespace

bool WgradChannelsLastCopiesEngine::is_for(const Problem& problem) const {
  return is_wgrad(problem);
}

std::variant<RelaidEngine::Made, Refusal> WgradChannelsLastCopiesEngine::propose(
    const ConvolutionProblem& problem, const DeviceDescription& device, const Terms& terms) const {
  if (terms.copy_results) return Refusal{"a filter's gradient is no copy"};
  auto answer = relaid_wgrad(problem, device);
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  auto& relaid = std::get<RelaidProblem>(answer);
  std::optional<Made> best;
  Refusal first;
  // Sums of several chunks are in f32; those of one chunk may be of dw's type and order.
  for (const bool sums : {false, true}) {
    if (!sums && !channels_last(problem)) continue;
    const auto least = least_chunks(relaid, sums ? sums_bytes(problem) : 0, terms.budget);
    if (const auto* refusal = std::get_if<Refusal>(&least)) {
      first = *refusal;
      continue;
    }
    for (const std::int64_t chunks :
         numbers_of_chunks(std::get<std::int64_t>(least), problem.batch)) {
      if (chunks > 1 && !sums && problem.w_type != KILN_DATA_FLOAT) break;
      Made made = in_chunks(relaid, problem, chunks, sums, terms.budget, device);
      if (!best || made.seconds < best->seconds) best = std::move(made);
    }
  }
  if (!best) return first;
  return std::move(*best);
}

}  // namespace kiln
