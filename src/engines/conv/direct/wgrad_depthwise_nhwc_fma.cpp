#include "engines/conv/direct/wgrad_depthwise_nhwc_fma.hpp"

#include <algorithm>
#include <cstdlib>

#include "conv/direct/depthwise_wgrad_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/choice.hpp"
#include "engines/conv/direct/depthwise_lanes.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/wgrad/product.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_sums = 80;     // of a thread, in registers of 32 bits
constexpr std::int64_t most_columns = 12;  // of the source, that a thread holds
constexpr int clusters[] = {1, 2, 4, 8};

struct Tile {
  std::int64_t q;            // pixels of dy of a unit
  std::int64_t filter_rows;  // of a thread
  std::int64_t lanes, runs;  // vectors of channels by threads that take units in turn
  std::int64_t min_blocks;

  std::int64_t threads() const { return lanes * runs; }
};

std::int64_t compute_bytes(DataType type) {
  return static_cast<std::int64_t>(size_of(compute_type(type)));
}

std::int64_t columns_met(const Gather& gather, std::int64_t q) {
  return (q - 1) * gather.stride[2] +
         (gather.phases.front().taps[2] - 1) * std::abs(gather.step[2]) + 1;
}

Tile tile_of(const ConvolutionProblem& problem, const Gather& gather) {
  const Spatial& taps = gather.phases.front().taps;
  const std::int64_t vector = channel_vector(problem.type);
  const std::int64_t registers = vector * taps[2] * compute_bytes(problem.type) / 4;  // of a row
  Tile tile{4, std::clamp<std::int64_t>(most_sums / registers, 1, taps[1]),
            depthwise_lanes(ceil_div(problem.groups, vector)), 0, 0};
  while (tile.q > 1 && columns_met(gather, tile.q) > most_columns) tile.q /= 2;
  const DepthwiseBlock block =
      depthwise_block(tile.filter_rows * registers +
                      (columns_met(gather, tile.q) + tile.q) * channel_vector_bytes / 4);
  tile.runs = std::max<std::int64_t>(block.threads / tile.lanes, 1);
  tile.min_blocks = block.min_blocks;
  return tile;
}

std::int64_t tile_count(const ConvolutionProblem& problem, const Gather& gather, const Tile& tile) {
  return ceil_div(problem.groups, tile.lanes * channel_vector(problem.type)) *
         ceil_div(gather.phases.front().taps[1], tile.filter_rows);
}
std::int64_t tile_elements(const ConvolutionProblem& problem, const Gather& gather,
                           const Tile& tile) {
  return tile.filter_rows * gather.phases.front().taps[2] * tile.lanes *
         channel_vector(problem.type);
}
std::int64_t units_of(const ConvolutionProblem& problem, const Gather& gather, const Tile& tile) {
  const Spatial& pixels = gather.phases.front().pixels;
  return problem.batch * pixels[1] * ceil_div(pixels[2], tile.q);
}

std::string refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (gather.rows != 1 || gather.channels != 1)
    return cat("groups of ", gather.channels, " input and ", gather.rows,
               " output channels; this engine takes single ones");
  if (std::string reason = channel_vectors_refusal(problem, gather); !reason.empty()) return reason;
  if (columns_met(gather, 1) > most_columns)
    return cat("a row of the filter reaches over ", columns_met(gather, 1),
               " places; expected at most ", most_columns);
  return "";
}

// As many groups as keep every multiprocessor busy, each with some units for every thread.
int groups_of(const ConvolutionProblem& problem, const Gather& gather, const Tile& tile,
              const DeviceDescription& device) {
  constexpr std::int64_t blocks_each = 4, least_units = 4;
  const std::int64_t tiles = tile_count(problem, gather, tile);
  const std::int64_t bytes =
      tiles * tile_elements(problem, gather, tile) * compute_bytes(problem.type);
  return static_cast<int>(std::min({ceil_div(blocks_each * device.multiprocessors, tiles),
                                    static_cast<std::int64_t>(most_workspace) / bytes,
                                    units_of(problem, gather, tile) / (least_units * tile.runs)}));
}

double seconds(const ConvolutionProblem& problem, std::int64_t blocks, bool two_steps,
               const DeviceDescription& device) {
  // What a multiprocessor multiplies and adds a second with two blocks, and how much of memory's
  // rate is reached; a second kernel.
  constexpr double products = 128 * 0.8e9, memory_share = 0.5, second_kernel = 6e-6;
  const Work work = work_of(problem, false);
  const double busy =
      std::clamp(static_cast<double>(blocks) / (2.0 * device.multiprocessors), 1e-3, 1.0);
  return std::max(memory_bound_seconds(work.bytes / memory_share, device),
                  work.flops / 2 / (products * device.multiprocessors)) /
             busy +
         (two_steps ? second_kernel : 0);
}

KernelSpec shared_spec(const char* entry, const ConvolutionProblem& problem, const Gather& gather,
                       const Tile& tile) {
  const Gather::Phase& phase = gather.phases.front();
  KernelSpec spec;
  spec.engine = "wgrad_depthwise_nhwc_fma";
  spec.file = cat("conv/direct/", entry, ".cu");
  spec.entry = entry;
  spec.constants = {
      {"element_t", kernel_type(problem.type), ""},
      {"compute_t", kernel_type(compute_type(problem.type)), ""},
      {"GROUPS", problem.groups, "channels"},
      {"TAPS_R", phase.taps[1], ""},
      {"TAPS_S", phase.taps[2], ""},
      {"VECTOR", channel_vector(problem.type), "channels of a thread"},
      {"FILTER_ROWS", tile.filter_rows, "of a thread"},
      {"LANES_C", tile.lanes, "vectors of channels of a block"},
      {"DW_FIRST", phase.w_first, ""},
      {"DW_STRIDE_GROUP", gather.w_group, ""},
      {"DW_STRIDE_R", gather.w_tap[1], ""},
      {"DW_STRIDE_S", gather.w_tap[2], ""},
  };
  return spec;
}

}  // namespace

bool DepthwiseWgradEngine::is_for(const Problem& problem) const {
  return is_wgrad(problem) && std::get<ConvolutionProblem>(problem).groups > 1;
}

// Kernel 0 is that of one step, kernel 1 that of two.
std::variant<std::vector<Candidate>, Refusal> DepthwiseWgradEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (std::string reason = refusal(problem, gather); !reason.empty())
    return Refusal{std::move(reason)};
  const Tile tile = tile_of(problem, gather);
  const std::int64_t tiles = tile_count(problem, gather, tile);
  std::vector<Candidate> candidates;
  const auto add = [&](int cluster, int groups) {
    Candidate candidate;
    candidate.kernel = groups > 1 ? 1 : 0;
    candidate.parts = cluster;
    candidate.seconds = seconds(problem, tiles * cluster * groups, groups > 1, device);
    if (groups > 1)
      candidate.workspace = static_cast<std::size_t>(tiles * tile_elements(problem, gather, tile) *
                                                     compute_bytes(problem.type) * groups);
    candidates.push_back(std::move(candidate));
  };
  for (const int cluster : clusters)
    if (cluster <= device.largest_cluster) add(cluster, 1);
  if (const int groups = groups_of(problem, gather, tile, device); groups > 1) add(1, groups);
  return candidates;
}

Proposal DepthwiseWgradEngine::make(const Problem& any, const DeviceDescription& device,
                                    Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  if (candidate.kernel == 0) return propose(problem, candidate.parts, 1);
  const Gather gather = make_gather(problem);
  return propose(problem, candidate.parts,
                 groups_of(problem, gather, tile_of(problem, gather), device));
}

Proposal DepthwiseWgradEngine::propose(const ConvolutionProblem& problem, int cluster,
                                       int groups) const {
  const Gather gather = make_gather(problem);
  const Gather::Phase& phase = gather.phases.front();
  const Tile tile = tile_of(problem, gather);
  const bool partial = groups > 1;
  const std::int64_t vector = channel_vector(problem.type), bytes = compute_bytes(problem.type);
  const std::int64_t tiles = tile_count(problem, gather, tile);
  const std::int64_t elements = tile_elements(problem, gather, tile);
  const auto lower = [&](std::size_t i) {
    return phase.origin[i] + std::min<std::int64_t>((phase.taps[i] - 1) * gather.step[i], 0);
  };
  Proposal out;
  KernelSpec& spec = out.kernel;
  spec = shared_spec(name(), problem, gather, tile);
  spec.tile =
      cat(tile.lanes * vector, " channels, ", tile.filter_rows, " rows of the filter, ", tile.q,
          " pixels a unit, ", tile.threads(), " threads", partial ? ", two steps" : "");
  spec.alignment = channel_vector_bytes;
  spec.shared_memory = static_cast<std::uint32_t>((tile.threads() * vector + elements) * bytes);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("RUNS", tile.runs, "threads that take units in turn");
  add("TILE_Q", tile.q, "pixels of dy of a unit");
  add("OUT_Q", phase.pixels[2]);
  add("DIV_TILES_Q",
      make_wide_magic(static_cast<std::uint64_t>(ceil_div(phase.pixels[2], tile.q))));
  add("DIV_OUT_P", make_wide_magic(static_cast<std::uint64_t>(phase.pixels[1])));
  add("SOURCE_H", gather.source[1]);
  add("SOURCE_W", gather.source[2]);
  add("STRIDE_H", gather.stride[1]);
  add("STRIDE_W", gather.stride[2]);
  add("STEP_H", gather.step[1]);
  add("STEP_W", gather.step[2]);
  add("LOWER_H", lower(1), "the lowest tap of the first pixel");
  add("LOWER_W", lower(2));
  add("SOURCE_STRIDE_N", gather.source_strides[0]);
  add("SOURCE_STRIDE_H", gather.source_strides[3]);
  add("SOURCE_STRIDE_W", gather.source_strides[4]);
  add("OUT_STRIDE_N", gather.out_strides[0]);
  add("OUT_STRIDE_P", gather.out_strides[3]);
  add("OUT_STRIDE_Q", gather.out_strides[4]);
  add("PARTIAL", partial, "sums go to the workspace");
  add("MIN_BLOCKS", tile.min_blocks);
  add("SHARED_BYTES", std::int64_t{spec.shared_memory});

  DepthwiseWgradParams params{};
  params.units = units_of(problem, gather, tile);
  params.groups = static_cast<unsigned>(groups);
  params.elements = static_cast<unsigned>(tiles * elements);
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
  set(out.launch, tiles * cluster * groups, tile.threads(), spec.shared_memory);
  out.set_cluster(cluster);
  if (!partial) return out;
  Step finish;
  finish.kernel = shared_spec("wgrad_depthwise_finish", problem, gather, tile);
  finish.kernel.tile = "an element a thread";
  set(finish.launch, ceil_div(tiles * elements, 128), 128, 0);
  out.then.push_back(std::move(finish));
  out.workspace = static_cast<std::size_t>(tiles * elements * bytes * groups);
  return out;
}

}  // namespace kiln
