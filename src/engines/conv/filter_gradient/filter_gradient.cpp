#include "engines/conv/filter_gradient/filter_gradient.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "codegen/constant_writer.hpp"
#include "conv/geometry/depthwise_wgrad_params.h"
#include "core/integer.hpp"
#include "engines/engine.hpp"

namespace kiln {
namespace {

// Seconds of the second step, which adds up the sums that blocks left in the workspace; on an H200.
constexpr double second_kernel_seconds = 6e-6;

// Bytes of the sums of all tiles that so many groups of blocks leave.
std::size_t partial_bytes(const FilterGradientTiles& tiles, const Seen& seen, int groups) {
  return static_cast<std::size_t>(tiles.count(seen.gather) * tiles.elements(seen.gather) * groups) *
         size_of(compute_type(seen.problem.type()));
}

int groups_of(const FilterGradientTiles& tiles, const Seen& seen) {
  constexpr std::int64_t least_units = 4;
  return static_cast<int>(
      std::min({tiles.resident * seen.device.multiprocessors / tiles.count(seen.gather),
                static_cast<std::int64_t>(most_workspace / partial_bytes(tiles, seen, 1)),
                tiles.units(seen) / (least_units * tiles.at_once)}));
}

void add_tile(std::vector<Constant>& constants, const FilterGradientTiles& tiles,
              const Seen& seen) {
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  const ConstantWriter add(constants);
  add("element_t", kernel_type(seen.problem.type()));
  add("output_t", kernel_type(seen.problem.result_type()), "the type of dw");
  add("compute_t", kernel_type(compute_type(seen.problem.type())));
  add("GROUPS", gather.groups);
  add("CHANNELS", tiles.channels(gather), "of x, of each group, of a block");
  add("GROUP_CHANNELS", gather.channels, "channels of x of a group");
  add("ROWS", gather.rows, "channels of dy, of a group");
  add("TAPS_T", phase.taps[0]);
  add("TAPS_R", phase.taps[1]);
  add("TAPS_S", phase.taps[2]);
  add("FILTER_ROWS", tiles.filter_rows, "of a block");
  add("BLOCK_ROWS", tiles.block_rows, "channels of dy of a block");
  add("DW_FIRST", phase.w_first);
  add("DW_STRIDE_GROUP", gather.w_group);
  add("DW_STRIDE_ROW", gather.w_row);
  add("DW_STRIDE_C", gather.w_channel);
  add("DW_STRIDE_T", gather.w_tap[0]);
  add("DW_STRIDE_R", gather.w_tap[1]);
  add("DW_STRIDE_S", gather.w_tap[2]);
}

void add_geometry(std::vector<Constant>& constants, const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  const auto lower = [&](std::size_t i) {
    return phase.origin[i] + std::min<std::int64_t>((phase.taps[i] - 1) * gather.step[i], 0);
  };
  const ConstantWriter add(constants);
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

LaunchSpec launch_with(const DepthwiseWgradParams& params, std::int64_t blocks,
                       std::int64_t threads) {
  using Hole = LaunchSpec::Hole;
  LaunchSpec launch;
  launch.set_parameters(params);
  launch.patches = {{Hole::operand, 0, offsetof(DepthwiseWgradParams, x)},
                    {Hole::operand, 1, offsetof(DepthwiseWgradParams, dy)},
                    {Hole::operand, 2, offsetof(DepthwiseWgradParams, dw)},
                    {Hole::alpha, 0, offsetof(DepthwiseWgradParams, alpha)},
                    {Hole::beta, 0, offsetof(DepthwiseWgradParams, beta)}};
  if (params.groups > 1)
    launch.patches.push_back({Hole::workspace, 0, offsetof(DepthwiseWgradParams, partials)});
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  return launch;
}

DepthwiseWgradParams params_of(const FilterGradientTiles& tiles, const Seen& seen, int groups) {
  DepthwiseWgradParams params{};
  params.units = tiles.units(seen);
  params.groups = static_cast<unsigned>(groups);
  params.elements = static_cast<unsigned>(tiles.count(seen.gather) * tiles.elements(seen.gather));
  return params;
}

}  // namespace

std::int64_t FilterGradientTiles::count(const Gather& gather) const {
  const Spatial& taps = gather.phases.front().taps;
  return ceil_div(gather.groups * gather.rows, block_rows) *
         ceil_div(gather.channels, channels(gather)) * ceil_div(taps[1], filter_rows) * taps[0];
}
std::int64_t FilterGradientTiles::elements(const Gather& gather) const {
  return filter_rows * gather.phases.front().taps[2] * block_rows * channels(gather);
}

namespace filter_gradient {

std::vector<Offer> offers_of(const FilterGradientTiles& tiles, const Seen& seen, int most_cluster,
                             const std::function<double(const Sharing&)>& seconds) {
  std::vector<Offer> offers;
  for (int cluster = 1; cluster <= std::min(most_cluster, seen.device.largest_cluster);
       cluster *= 2)
    offers.push_back({{cluster}, seconds({cluster})});
  if (const int groups = groups_of(tiles, seen); groups > 1) {
    const Sharing two_steps{1, groups};
    offers.push_back({two_steps, seconds(two_steps) + second_kernel_seconds,
                      partial_bytes(tiles, seen, groups)});
  }
  return offers;
}

void write(KernelSpec& spec, const FilterGradientTiles& tiles, const Seen& seen) {
  add_tile(spec.constants, tiles, seen);
  add_geometry(spec.constants, seen.gather);
}

LaunchSpec launch_of(const KernelSpec& spec, const FilterGradientTiles& tiles, const Seen& seen,
                     const Sharing& sharing) {
  LaunchSpec launch = launch_with(params_of(tiles, seen, sharing.groups),
                                  tiles.blocks(seen, sharing), tiles.threads);
  launch.shape.shared_memory = spec.shared_memory;
  return launch;
}

void add_second_step(Proposal& proposal, const FilterGradientTiles& tiles, const Seen& seen,
                     const Sharing& sharing) {
  KernelSpec& first = proposal.first().kernel;
  const bool partial = sharing.groups > 1;
  first.constants.push_back({"PARTIAL", partial, "partial sums go to the workspace"});
  if (!partial) return;
  first.tile += ", two steps";
  constexpr std::int64_t threads = 128;
  const DepthwiseWgradParams params = params_of(tiles, seen, sharing.groups);
  Step second;
  second.kernel.engine = first.engine;
  second.kernel.file = "conv/direct/wgrad_depthwise_finish.cu";
  second.kernel.entry = "wgrad_depthwise_finish";
  second.kernel.tile = "an element a thread";
  add_tile(second.kernel.constants, tiles, seen);
  second.launch = launch_with(params, ceil_div(std::int64_t{params.elements}, threads), threads);
  proposal.steps.push_back(std::move(second));
  proposal.workspace = partial_bytes(tiles, seen, sharing.groups);
}

}  // namespace filter_gradient
}  // namespace kiln
