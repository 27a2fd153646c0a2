#include "engines/conv/dense/wgrad/wgrad_dense_wgmma.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codegen/constant_writer.hpp"
#include "conv/dense/wgrad/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/dense/constants.hpp"
#include "engines/conv/dense/planar.hpp"
#include "engines/conv/dense/wgrad/definition.hpp"
#include "engines/conv/dense/wgrad/wgrad_dense_work.hpp"
#include "engines/conv/filter_gradient/layout.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/maps/map_refusal.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/dense_cost.hpp"

namespace kiln {
namespace {

// Cluster sizes that fill a chip of 132 multiprocessors, or almost.
constexpr int clusters[] = {1, 2, 4, 8};

// Steps between two promotions, which bound the tensor cores' rounding toward zero.
std::int64_t promoted_steps(const WgradDenseTile& tile, const ConvolutionProblem& problem) {
  constexpr std::int64_t run = 16384;  // as dense_run in promotion.cpp
  const std::int64_t pixels = tile.split ? promotion_run(usual_reduction(problem)) : run;
  return std::max<std::int64_t>(pixels / tile.step_pixels, 1);
}

// Whether at most half of the tile's rows and columns would be idle; else a smaller tile is better.
bool suits(const WgradDenseTile& tile, const ConvolutionProblem& problem) {
  return tile.filters() < 2 * round_up(rows_of(problem), 64) &&
         tile.right < 2 * round_up(column_blocks(tile, problem) * tile.line_channels(), 64);
}

Refusal refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const DeviceDescription& device = seen.device;
  if (auto refused = fragment_refusal(problem, usual_reduction(problem), device)) return refused;
  constexpr std::int64_t least_split = 320;  // shorter sums would need promotion within a step
  if (is_split(problem) && usual_reduction(problem) < least_split)
    return cat("each output is a sum of ", usual_reduction(problem), " products; below ",
               least_split, " 3xTF32 has to be promoted more often than this engine does");
  if (auto refused = warpgroup_refusal(device)) return refused;
  if (auto refused = copy_engine_refusal(device)) return refused;
  const Gather::Phase& phase = gather.phases.front();
  if (auto refused = map_phase_refusal(gather, phase)) return refused;
  if (auto refused = traversal_stride_refusal(gather)) return refused;
  if (pixels_of(problem) > limit32 / 2)
    return cat(pixels_of(problem), " pixels of dy; expected at most ", limit32 / 2);
  if (problem.alignment < 16)
    return cat("the alignment is ", problem.alignment,
               " bytes; expected 16, as the copy engine has it");
  const std::int64_t vector = dense_vector(problem.type());
  for (const auto& [count, what] : {std::pair(gather.channels, "input"), {gather.rows, "output"}})
    if (count % vector != 0)
      return cat(count, " ", what, " channels; expected a multiple of ", vector);
  if (auto refused = map_strides_refusal("x", problem.type(), gather.source_strides))
    return refused;
  if (dy_planar(problem)) return planar_dy_refusal(problem, gather);
  return map_strides_refusal("dy", problem.type(), gather.out_strides);
}

Refusal planar_refusal(const Seen& seen) {
  return planar_wgrad_refusal(seen.problem, seen.gather, seen.device);
}

// The tiles that can serve the problem and of which at most half of the rows and columns are idle.
std::vector<WgradDenseTile> lay(const Seen& seen, bool planar) {
  const ConvolutionProblem& problem = seen.problem;
  std::vector<WgradDenseTile> out;
  for (const WgradDenseTile& tile :
       wgrad_dense_tiles(size_of(problem.type()), planar, is_split(problem)))
    if (suits(tile, problem) && takes(tile, problem, seen.gather)) out.push_back(tile);
  return out;
}

TileCounts count(const WgradDenseTile& tile, const Seen& seen) {
  return {.all = tile_count(tile, seen.problem)};
}

std::size_t workspace_bytes(const WgradDenseTile& tile, const ConvolutionProblem& problem,
                            int groups) {
  return static_cast<std::size_t>(tile_count(tile, problem) * groups * tile.quads() *
                                  tile.consumers * 128 * quad_bytes);
}

std::vector<Offer> offers(const WgradDenseTile& tile, const Seen& seen,
                          const TileCounts& /*tiles*/) {
  const ConvolutionProblem& problem = seen.problem;
  const DeviceDescription& device = seen.device;
  const DenseWgradWork whole = whole_work(tile, problem);
  std::vector<Offer> out;
  const auto add = [&](const Sharing& sharing) {
    const DenseWgradWork work = divided(whole, tile, problem, sharing);
    Offer offer{sharing, dense_wgrad_seconds(work, device)};
    if (sharing.groups > 1) {
      offer.workspace = workspace_bytes(tile, problem, sharing.groups);
      offer.finish_seconds = dense_wgrad_second_seconds(work, device);
    }
    out.push_back(offer);
  };
  for (const int cluster : clusters) {
    if (cluster > device.largest_cluster || (tile.persistent() && cluster > 1)) break;
    add({cluster, 1});
    if (tile.persistent()) continue;  // persistent blocks leave no partial sums
    const int groups = cluster <= 2 ? groups_of(whole, tile, problem, cluster, device) : 1;
    if (groups > 1) add({cluster, groups});
  }
  return out;
}

// Whether TMA can store a persistent tile's results: dw has the operands' 16-bit type and strides
// that a map can have.
bool has_map_of_dw(const ConvolutionProblem& problem, const Gather& gather) {
  if (problem.result_type() != problem.type() || gather.w_channel != 1) return false;
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t vector = dense_vector(problem.type());
  const auto whole = [&](std::int64_t stride) { return stride > 0 && stride % vector == 0; };
  for (std::size_t i = 0; i < 3; ++i)
    if (phase.taps[i] > 1 && !whole(gather.w_tap[i])) return false;
  return problem.groups == 1 && problem.w_type == problem.type() && gather.w_channel == 1 &&
         whole(gather.w_row) && phase.w_first % vector == 0;
}

// Neighbouring blocks are served together where they read the same lines at a time, so that 16 of
// them had best be 4 x 4 tiles. The number of rows of a band of tiles: 4, or near it and a divisor.
std::int64_t band_rows(std::int64_t row_tiles) {
  for (const std::int64_t rows : {4, 3, 5, 6, 2})
    if (row_tiles % rows == 0) return rows;
  return row_tiles;
}

// Registers of a thread of the helper warpgroups, and of the consumers.
struct Registers {
  int helper, consumer;
};
Registers registers_of(const WgradDenseTile& tile) {
  if (tile.consumers == 1) return {tile.turns() ? 88 : 56, 240};
  if (tile.helpers == 2) return {64, 192};
  return tile.turns() ? Registers{88, 208} : Registers{40, 232};
}

// The constants that both steps have.
void add_shared(std::vector<Constant>& constants, const WgradDenseTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  const ConstantWriter add(constants);
  add("element_t", kernel_type(problem.type()));
  add("output_t", kernel_type(problem.result_type()));
  add("compute_t", kernel_type(compute_type(problem.type())));
  add("CHANNELS", channels_of(problem), "channels of x in PACKED groups");
  add("ROWS", rows_of(problem), "filters of PACKED groups");
  add("GROUPS", problem.groups, "groups of channels");
  add("PACKED", packed_groups(problem), "groups that are multiplied as one");
  add("TAPS_T", phase.taps[0]);
  add("TAPS_R", phase.taps[1]);
  add("TAPS_S", phase.taps[2]);
  add("TAPS_RS", phase.taps[1] * phase.taps[2]);
  add("TAPS", problem.taps());
  add("CHANNEL_BLOCKS", ceil_div(channels_of(problem), tile.line_channels()), "blocks of a tap");
  add("TAPS_SIDE_BY_SIDE", taps_side_by_side(gather), "contiguous in dw; else channels are");
  add("COLUMN_BLOCKS", column_blocks(tile, problem));
  const std::int64_t row_tiles = ceil_div(rows_of(problem), tile.filters());
  const std::int64_t group_tiles =
      tile_count(tile, problem) / (problem.groups / packed_groups(problem));
  const std::int64_t band = taps_side_by_side(gather) ? row_tiles : band_rows(row_tiles);
  add("BAND_ROWS", band, "tiles of filters whose tiles have consecutive numbers");
  add("BAND_TILES", group_tiles / row_tiles * band);
  add("GROUP_TILES", group_tiles);
  add("TILES", tile_count(tile, problem));
  add("DW_FIRST", phase.w_first);
  add("DW_STRIDE_ROW", gather.w_row);
  add("DW_STRIDE_CHANNEL", gather.w_channel);
  add("DW_STRIDE_T", gather.w_tap[0]);
  add("DW_STRIDE_R", gather.w_tap[1]);
  add("DW_STRIDE_S", gather.w_tap[2]);
  add("DW_PAIRS", in_pairs(gather), "two channels of dw are read and written as one word");
  add("PLANAR", tile.planar, "channels first: the pixels of a channel are contiguous");
  add("CONSUMERS", std::int64_t{tile.consumers}, "warpgroups of a block that multiply");
  add("LEFT", std::int64_t{tile.left}, "operands A, of 64 filters each, of a warpgroup");
  add("BLOCK_RIGHT", std::int64_t{tile.right}, "columns of operand B: channels of x");
  add_gradient_definition(constants, problem, gather);
}

int threads(const WgradDenseTile& tile) { return tile.threads(); }
std::uint32_t shared_memory(const WgradDenseTile& tile, const Seen& /*seen*/) {
  return static_cast<std::uint32_t>(tile.shared_memory());
}
std::size_t alignment(const Seen& /*seen*/) { return 16; }

constexpr const char* partial_constant = "PARTIAL";  // finish() sets it

bool has_planar_dy(const WgradDenseTile& tile, const ConvolutionProblem& problem) {
  return !tile.planar && dy_planar(problem);
}

void write(KernelSpec& spec, const WgradDenseTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  const DensePhase places = dense_phase(gather, phase);
  if (tile.persistent()) {
    spec.file = "conv/dense/wgrad/wgrad_dense_persistent_wgmma.cu";
    spec.entry = "wgrad_dense_persistent_wgmma";
  }
  add_shared(spec.constants, tile, seen);
  const ConstantWriter add(spec.constants);
  add_dense_space(spec.constants, gather);
  add("OUT_O", phase.pixels[0], "planes of dy");
  add("OUT_P", phase.pixels[1]);
  add("OUT_Q", phase.pixels[2]);
  const std::int64_t plane = phase.pixels[1] * phase.pixels[2];
  add("ADVANCE_Q", tile.step_pixels % phase.pixels[2], "columns of dy that a step moves on");
  add("ADVANCE_P", tile.step_pixels / phase.pixels[2] % phase.pixels[1]);
  add("ADVANCE_O", tile.step_pixels / plane % phase.pixels[0]);
  add("ADVANCE_N", tile.step_pixels / plane / phase.pixels[0]);
  add("PLANE", phase.out_pixels());
  add("PLANE_STEPS", ceil_div(phase.out_pixels(), tile.step_pixels), "PLANAR: steps in an image");
  add("LOWER_D", places.lower[2], "plane of x that the lowest tap of pixel 0 meets");
  add("LOWER_H", places.lower[1]);
  add("LOWER_W", places.lower[0]);
  add("DY_PLANAR", has_planar_dy(tile, problem), "dy is channels first, x channels last");
  add("DY_IN_LINE", in_line(gather.out_strides, phase.pixels),
      "one stride leads from each pixel of dy to the next");
  add(partial_constant, false, "partial sums go to the workspace");
  add("STEP_PIXELS", std::int64_t{tile.step_pixels});
  add("STAGES", std::int64_t{tile.stages()});
  add("RESULT_SLABS", std::int64_t{tile.slabs}, "persistent: buffers of a warpgroup");
  add("TURNED_SLOTS", std::int64_t{tile.turned_slots()}, "buffers of a step's transposed x");
  add("HELPERS", std::int64_t{tile.helpers}, "warpgroups that issue copies, transpose");
  add("SHARED_BYTES", std::int64_t{tile.shared_memory()});
  add("HELPER_REGISTERS", std::int64_t{registers_of(tile).helper});
  add("CONSUMER_REGISTERS", std::int64_t{registers_of(tile).consumer});
  add("PROMOTE", promoted_steps(tile, problem), "steps of the reduction between promotions");
  add_sum_registers(spec.constants, tile.left, tile.right / 8, tile.split, "f32");
  add_warpgroup_instruction(spec.constants, tile.right);
}

DenseWgradParams params_of(const WgradDenseTile& tile, const Seen& seen, const Sharing& sharing) {
  DenseWgradParams params{};
  params.steps = static_cast<unsigned>(step_count(tile, seen.problem));
  params.groups = static_cast<unsigned>(sharing.groups);
  params.images = static_cast<unsigned>(seen.problem.batch);
  return params;
}

// A launch without parameters.
LaunchSpec launch_of(const Seen& seen, const Sharing& sharing, std::int64_t blocks,
                     std::int64_t threads, std::uint32_t shared_memory) {
  using Hole = LaunchSpec::Hole;
  LaunchSpec launch;
  launch.empty = seen.problem.batch == 0;
  launch.patches = {{Hole::operand, 0, offsetof(DenseWgradParams, x)},
                    {Hole::operand, 1, offsetof(DenseWgradParams, dy)},
                    {Hole::operand, 2, offsetof(DenseWgradParams, dw)},
                    {Hole::alpha, 0, offsetof(DenseWgradParams, alpha)},
                    {Hole::beta, 0, offsetof(DenseWgradParams, beta)}};
  if (sharing.groups > 1)
    launch.patches.push_back({Hole::workspace, 0, offsetof(DenseWgradParams, partials)});
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  launch.shape.shared_memory = shared_memory;
  return launch;
}

LaunchSpec launch(const KernelSpec& spec, const WgradDenseTile& tile, const Seen& seen,
                  const Sharing& sharing) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t tiles = tile_count(tile, problem);
  const std::int64_t blocks = tile.persistent()
                                  ? std::min<std::int64_t>(tiles, seen.device.multiprocessors)
                                  : tiles * sharing.parts * sharing.groups;
  LaunchSpec launch = launch_of(seen, sharing, blocks, tile.threads(), spec.shared_memory);
  const DenseWgradParams params = params_of(tile, seen, sharing);
  constexpr std::uint8_t x = 0, dy = 1, dw = 2;
  const PixelBox box{tile.line_channels(), tile.step_pixels};
  const auto map_of_dy = [&] {
    if (has_planar_dy(tile, problem)) return planar_dy_map(problem, gather);
    const bool line = in_line(gather.out_strides, phase.pixels);
    return dense_pixel_map(problem, gather, phase, gather.out_strides, line, box);
  };
  const std::vector<TensorMapSpec> maps =
      tile.planar ? planar_wgrad_maps(problem, gather, tile.right, tile.filters())
                  : std::vector{dense_source_map(problem, gather, phase, box), map_of_dy()};
  const auto add_map = [&](const TensorMapSpec& map, std::uint8_t operand, std::int64_t first) {
    launch.maps.push_back(
        {map, operand, first,
         static_cast<std::uint16_t>(sizeof params + launch.maps.size() * sizeof(TensorMap))});
  };
  for (std::size_t i = 0; i < maps.size(); ++i) add_map(maps[i], i < maps.size() / 2 ? x : dy, 0);
  if (tile.persistent())
    add_map(dense_filter_map(problem, gather, phase, {tile.line_channels(), 0}, 64), dw,
            phase.w_first);
  launch.parameters.resize(sizeof params + launch.maps.size() * sizeof(TensorMap));
  std::memcpy(launch.parameters.data(), &params, sizeof params);
  return launch;
}

// Several groups: the step that adds up the sums that they leave in the workspace.
void finish(Proposal& proposal, const WgradDenseTile& tile, const Seen& seen,
            const Sharing& sharing) {
  if (sharing.groups == 1) return;
  KernelSpec& first = proposal.first().kernel;
  first.tile += ", two steps";
  for (Constant& each : first.constants)
    if (each.name == partial_constant) each.value = true;
  DenseWgradFinishParams params = finish_shape(sharing.groups);
  params.common = params_of(tile, seen, sharing);
  const std::int64_t lanes = tile_count(tile, seen.problem) * tile.quads() * tile.consumers * 128;
  Step second;
  second.kernel.engine = first.engine;
  second.kernel.file = "conv/dense/wgrad/wgrad_dense_finish.cu";
  second.kernel.entry = "wgrad_dense_finish";
  second.kernel.tile = "a quad a lane";
  second.kernel.shared_memory = most_finish_warps * 32 * quad_bytes;
  add_shared(second.kernel.constants, tile, seen);
  second.kernel.constants.push_back(
      {"FINISH_WARPS", std::int64_t{most_finish_warps}, "of a block, at most"});
  second.launch = launch_of(seen, sharing, lanes / 32 / params.slices,
                            32 * params.slices * params.parts, second.kernel.shared_memory);
  second.launch.set_parameters(params);
  proposal.steps.push_back(std::move(second));
  proposal.workspace = workspace_bytes(tile, seen.problem, sharing.groups);
}

// Adds to the sums in the workspace, which the first step of another proposal with the same tile,
// cluster and groups left there for other images.
void continue_sums(Step& first) {
  constexpr unsigned continued = 1;
  std::memcpy(first.launch.parameters.data() + offsetof(DenseWgradParams, continued), &continued,
              sizeof continued);
}

constexpr Recipe<WgradDenseTile> recipe_of(const char* name, Refusal (*refusal)(const Seen&),
                                           std::vector<WgradDenseTile> (*lay)(const Seen&)) {
  return {.name = name,
          .file = "conv/dense/wgrad/wgrad_dense_wgmma.cu",
          .entry = "wgrad_dense_wgmma",
          .filter_gradient = true,
          .mixed_types = true,
          .refusal = refusal,
          .lay = lay,
          .no_tile = "all tiles would be mostly idle, or do not take the layout of dy",
          .count = count,
          .offers = offers,
          .describe = describe,
          .threads = threads,
          .shared_memory = shared_memory,
          .alignment = alignment,
          .write = write,
          .launch = launch,
          .finish = finish,
          .continue_sums = continue_sums};
}

}  // namespace

bool takes(const WgradDenseTile& tile, const ConvolutionProblem& problem, const Gather& gather) {
  const bool planar_dy = has_planar_dy(tile, problem);
  constexpr int line = 64;
  if (planar_dy && tile.step_pixels != line) return false;
  return !tile.persistent() || (!planar_dy && has_map_of_dw(problem, gather));
}

constinit const Recipe<WgradDenseTile> wgrad_dense_nhwc_wgmma =
    recipe_of("wgrad_dense_nhwc_wgmma", refusal, [](const Seen& seen) { return lay(seen, false); });
constinit const Recipe<WgradDenseTile> wgrad_dense_nchw_wgmma = recipe_of(
    "wgrad_dense_nchw_wgmma", planar_refusal, [](const Seen& seen) { return lay(seen, true); });

}  // namespace kiln
