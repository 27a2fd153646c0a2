#include "engines/conv/filter_gradient/filter_gradient.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "conv/geometry/depthwise_wgrad_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/engine.hpp"

namespace kiln {
namespace {

constexpr int clusters[] = {1, 2, 4, 8};

std::int64_t compute_bytes(const ConvolutionProblem& problem) {
  return static_cast<std::int64_t>(size_of(compute_type(problem.type())));
}

// Bytes of the sums of all tiles that one group of blocks leaves.
std::int64_t partial_bytes(const ConvolutionProblem& problem, const FilterGradientTiles& tiles) {
  const Gather gather = make_gather(problem);
  return tiles.tiles(problem, gather) * tiles.elements(gather) * compute_bytes(problem);
}

}  // namespace

std::int64_t FilterGradientTiles::tiles(const ConvolutionProblem& problem,
                                        const Gather& gather) const {
  const Spatial& taps = gather.phases.front().taps;
  return ceil_div(problem.groups * gather.rows, block_rows) *
         ceil_div(gather.channels, channels(gather)) * ceil_div(taps[1], filter_rows) * taps[0];
}
std::int64_t FilterGradientTiles::elements(const Gather& gather) const {
  return filter_rows * gather.phases.front().taps[2] * block_rows * channels(gather);
}

int filter_gradient_groups(const ConvolutionProblem& problem, const FilterGradientTiles& tiles,
                           const DeviceDescription& device) {
  constexpr std::int64_t least_units = 4;
  const std::int64_t count = tiles.tiles(problem, make_gather(problem));
  return static_cast<int>(
      std::min({tiles.resident * device.multiprocessors / count,
                static_cast<std::int64_t>(most_workspace) / partial_bytes(problem, tiles),
                tiles.units / (least_units * tiles.at_once)}));
}

std::vector<Candidate> filter_gradient_candidates(
    const ConvolutionProblem& problem, const FilterGradientTiles& tiles,
    const DeviceDescription& device,
    const std::function<double(std::int64_t blocks, int cluster)>& seconds) {
  const std::int64_t count = tiles.tiles(problem, make_gather(problem));
  std::vector<Candidate> candidates;
  const auto add = [&](int cluster, int groups) {
    Candidate candidate;
    candidate.kernel = groups > 1 ? 1 : 0;
    candidate.parts = cluster;
    candidate.seconds =
        seconds(count * cluster * groups, cluster) + (groups > 1 ? second_kernel_seconds : 0);
    if (groups > 1)
      candidate.workspace = static_cast<std::size_t>(partial_bytes(problem, tiles) * groups);
    candidates.push_back(std::move(candidate));
  };
  for (const int cluster : clusters)
    if (cluster <= device.largest_cluster) add(cluster, 1);
  if (const int groups = filter_gradient_groups(problem, tiles, device); groups > 1) add(1, groups);
  return candidates;
}

KernelSpec filter_gradient_spec(const char* engine, const char* file, const char* entry,
                                const ConvolutionProblem& problem,
                                const FilterGradientTiles& tiles) {
  const Gather gather = make_gather(problem);
  const Gather::Phase& phase = gather.phases.front();
  KernelSpec spec;
  spec.engine = engine;
  spec.file = file;
  spec.entry = entry;
  spec.constants = {
      {"element_t", kernel_type(problem.type()), ""},
      {"output_t", kernel_type(problem.result_type()), "the type of dw"},
      {"compute_t", kernel_type(compute_type(problem.type())), ""},
      {"GROUPS", problem.groups, ""},
      {"CHANNELS", tiles.channels(gather), "of x, of each group, of a block"},
      {"GROUP_CHANNELS", gather.channels, "channels of x of a group"},
      {"ROWS", gather.rows, "channels of dy, of a group"},
      {"TAPS_T", phase.taps[0], ""},
      {"TAPS_R", phase.taps[1], ""},
      {"TAPS_S", phase.taps[2], ""},
      {"FILTER_ROWS", tiles.filter_rows, "of a block"},
      {"BLOCK_ROWS", tiles.block_rows, "channels of dy of a block"},
      {"DW_FIRST", phase.w_first, ""},
      {"DW_STRIDE_GROUP", gather.w_group, ""},
      {"DW_STRIDE_ROW", gather.w_row, ""},
      {"DW_STRIDE_C", gather.w_channel, ""},
      {"DW_STRIDE_T", gather.w_tap[0], ""},
      {"DW_STRIDE_R", gather.w_tap[1], ""},
      {"DW_STRIDE_S", gather.w_tap[2], ""},
  };
  return spec;
}

void add_filter_gradient_geometry(KernelSpec& spec, const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  const auto lower = [&](std::size_t i) {
    return phase.origin[i] + std::min<std::int64_t>((phase.taps[i] - 1) * gather.step[i], 0);
  };
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("OUT_P", phase.pixels[1]);
  add("OUT_Q", phase.pixels[2]);
  add("SOURCE_H", gather.source[1]);
  add("SOURCE_W", gather.source[2]);
  add("STRIDE_H", gather.stride[1]);
  add("STRIDE_W", gather.stride[2]);
  add("STEP_H", gather.step[1]);
  add("STEP_W", gather.step[2]);
  add("LOWER_H", lower(1), "row of x that the lowest tap of pixel 0 meets");
  add("LOWER_W", lower(2));
  add("SOURCE_STRIDE_N", gather.source_strides[0]);
  add("SOURCE_STRIDE_H", gather.source_strides[3]);
  add("SOURCE_STRIDE_W", gather.source_strides[4]);
  add("OUT_STRIDE_N", gather.out_strides[0]);
  add("OUT_STRIDE_P", gather.out_strides[3]);
  add("OUT_STRIDE_Q", gather.out_strides[4]);
}

Proposal filter_gradient_proposal(const ConvolutionProblem& problem,
                                  const FilterGradientTiles& tiles, KernelSpec spec, int cluster,
                                  int groups) {
  const Gather gather = make_gather(problem);
  const bool partial = groups > 1;
  const std::int64_t count = tiles.tiles(problem, gather);
  const std::int64_t elements = count * tiles.elements(gather);
  Proposal out;
  out.first().kernel = std::move(spec);
  out.first().kernel.constants.push_back({"PARTIAL", partial, "partial sums go to the workspace"});
  if (partial) out.first().kernel.tile += ", two steps";

  DepthwiseWgradParams params{};
  params.units = tiles.units;
  params.groups = static_cast<unsigned>(groups);
  params.elements = static_cast<unsigned>(elements);
  using Hole = LaunchSpec::Hole;
  const auto set = [&](LaunchSpec& launch, std::int64_t blocks, std::int64_t block,
                       std::uint32_t shared_memory) {
    launch.set_parameters(params);
    launch.patches = {{Hole::operand, 0, offsetof(DepthwiseWgradParams, x)},
                      {Hole::operand, 1, offsetof(DepthwiseWgradParams, dy)},
                      {Hole::operand, 2, offsetof(DepthwiseWgradParams, dw)},
                      {Hole::alpha, 0, offsetof(DepthwiseWgradParams, alpha)},
                      {Hole::beta, 0, offsetof(DepthwiseWgradParams, beta)}};
    if (partial)
      launch.patches.push_back({Hole::workspace, 0, offsetof(DepthwiseWgradParams, partials)});
    launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
    launch.shape.block = {static_cast<std::uint32_t>(block), 1, 1};
    launch.shape.shared_memory = shared_memory;
  };
  set(out.first().launch, count * cluster * groups, tiles.threads,
      out.first().kernel.shared_memory);
  out.first().set_cluster(cluster);
  if (!partial) return out;
  Step finish;
  finish.kernel = filter_gradient_spec(out.first().kernel.engine.c_str(),
                                       "conv/direct/wgrad_depthwise_finish.cu",
                                       "wgrad_depthwise_finish", problem, tiles);
  finish.kernel.tile = "an element a thread";
  set(finish.launch, ceil_div(elements, 128), 128, 0);
  out.steps.push_back(std::move(finish));
  out.workspace = static_cast<std::size_t>(elements * compute_bytes(problem) * groups);
  return out;
}

bool FilterGradientEngine::is_for(const Problem& problem) const {
  return is_wgrad(problem) && std::get<ConvolutionProblem>(problem).groups > 1;
}

std::variant<std::vector<Candidate>, Refusal> FilterGradientEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  auto answer = method_.ask(problem, gather, device);
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  const auto& taken = std::get<FilterGradientAnswer>(answer);
  return filter_gradient_candidates(problem, taken.tiles, device, taken.seconds);
}

Proposal FilterGradientEngine::make(const Problem& any, const DeviceDescription& device,
                                    Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  if (candidate.kernel == 0) return propose(problem, device, candidate.parts, 1);
  const Gather gather = make_gather(problem);
  const auto answer = method_.ask(problem, gather, device);
  const FilterGradientTiles& tiles = std::get<FilterGradientAnswer>(answer).tiles;
  return propose(problem, device, candidate.parts, filter_gradient_groups(problem, tiles, device));
}

}  // namespace kiln
