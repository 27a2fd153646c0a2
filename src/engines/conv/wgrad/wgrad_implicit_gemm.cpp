#include "engines/conv/wgrad/wgrad_implicit_gemm.hpp"

#include <algorithm>
#include <limits>

#include "core/text.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/cost/cost_model.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

// Small tiles for few, long reductions: larger tiles would leave multiprocessors idle. Several
// slices of a block share the reduction of one tile. Columns: m, n, k, thread_m, thread_n, stages,
// min_blocks, packs_from, slices.
constexpr GemmTile sliced_tiles[] = {
    {96, 64, 8, 12, 8, 4, 1, 0, 4},
    {64, 64, 8, 8, 8, 4, 2, 90, 4},
    {32, 64, 8, 4, 8, 4, 2, 90, 4},
};
constexpr GemmTile sliced_double_tiles[] = {
    {32, 64, 8, 8, 8, 3, 1, 0, 8},
    {32, 32, 8, 4, 4, 3, 1, 0, 4},
};
constexpr GemmTile sliced_half_tiles[] = {
    {64, 64, 8, 8, 8, 2, 2, 90, 4},
    {32, 64, 8, 4, 8, 2, 2, 90, 4},
};

GemmStages stages_of(const ConvolutionProblem& problem, const Gather& gather,
                     const GemmTile& tile) {
  return {tile, problem.type(), gather.out_strides[1] != 1 || gather.rows == 1,
          !gather.channels_inner()};
}

KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather, const GemmTile& tile,
                     const DeviceDescription& device) {
  const bool x_lanes_on_k = !gather.channels_inner();
  const bool dy_lanes_on_k = gather.out_strides[1] != 1 || gather.rows == 1;
  const GemmStages stages = stages_of(problem, gather, tile);
  KernelSpec spec;
  spec.engine = tile.mma() ? "wgrad_implicit_gemm_mma" : "wgrad_implicit_gemm_fma";
  spec.file = cat("conv/wgrad/", spec.engine, ".cu");
  spec.entry = "wgrad_implicit_gemm";
  spec.tile = describe(tile);
  spec.shared_memory = stages.bytes(tile, problem.type());
  spec.alignment = size_of(problem.type());
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add_wgrad_constants(spec.constants, gather, tile.m, tile.n, gather.channels_inner());
  const Spatial& taps = gather.phases.front().taps;
  add("TAP_MASK", taps[0] + taps[1] + taps[2] < 32);
  add_gemm_constants(spec.constants, tile, stages, problem.type(), device);
  add_checked_constant(spec.constants, problem, tile.mma(), false);
  add("X_LANES_ON_K", x_lanes_on_k);
  add("DY_LANES_ON_K", dy_lanes_on_k);
  add("LINES_ALONG_M", false);
  return spec;
}

// The refusal, if the tile at this split count does not fit the problem.
Refusal tile_refusal(const ConvolutionProblem& problem, const Gather& gather, const GemmTile& tile,
                     const DeviceDescription& device, int parts) {
  if (auto refused = wgrad_count_refusal(problem, tile.m, tile.n, parts)) return refused;
  const std::uint32_t bytes = stages_of(problem, gather, tile).bytes(tile, problem.type());
  if (bytes > static_cast<std::uint32_t>(device.shared_memory_per_block))
    return Refusal{cat("the tile needs ", bytes, " bytes of shared memory; a block has at most ",
                       device.shared_memory_per_block)};
  return {};
}

}  // namespace

std::vector<GemmTile> wgrad_tiles(DataType type) {
  const std::span<const GemmTile> whole = fma_tiles(type);
  std::vector<GemmTile> tiles(whole.begin(), whole.end());
  const auto add = [&](const auto& more) {
    tiles.insert(tiles.end(), std::begin(more), std::end(more));
  };
  if (type == KILN_DATA_DOUBLE)
    add(sliced_double_tiles);
  else if (type == KILN_DATA_FLOAT)
    add(sliced_tiles);
  else
    add(sliced_half_tiles);
  return tiles;
}

std::variant<Proposal, Refusal> propose_wgrad(const ConvolutionProblem& problem,
                                              const GemmTile& tile, const DeviceDescription& device,
                                              int parts) {
  const Gather gather = make_gather(problem);
  if (auto refused = tile_refusal(problem, gather, tile, device, parts)) return refused;
  Proposal out{{make_spec(problem, gather, tile, device), {}}};
  out.first().launch =
      wgrad_launch(problem, wgrad_tile_count(problem, tile.m, tile.n) * parts,
                   static_cast<std::uint32_t>(tile.threads()), out.first().kernel.shared_memory);
  out.first().set_cluster(parts);
  return out;
}

namespace {

std::variant<std::vector<Candidate>, Refusal> candidates_of(const ConvolutionProblem& problem,
                                                            const std::vector<GemmTile>& tiles,
                                                            const DeviceDescription& device) {
  const Gather gather = make_gather(problem);
  GemmWork work;
  work.type = problem.type();
  work.results = static_cast<double>(operands_of(problem).back().count());
  work.bounds = true;                     // at least the last pixels need bounds checks
  work.stores = ResultStores::scattered;  // columns of dw may have any layout
  work.bytes = work_of(problem, false).bytes;
  std::vector<Candidate> candidates;
  Refusal first_refusal;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    work.tiles = wgrad_tile_count(problem, tiles[i].m, tiles[i].n);
    work.steps = static_cast<double>(problem.batch * problem.out_pixels()) / tiles[i].k;
    for (const int parts :
         parts_of(device, work.steps / tiles[i].slices, std::end(cluster_sizes)[-1])) {
      auto refused = tile_refusal(problem, gather, tiles[i], device, parts);
      if (!refused)
        candidates.push_back(
            {static_cast<int>(i), parts, gemm_seconds(tiles[i], work, parts, device), {}});
      else if (!first_refusal)
        first_refusal = std::move(refused);
    }
  }
  if (candidates.empty()) return first_refusal ? first_refusal : Refusal{"there is no tile"};
  return candidates;
}

Proposal proposal_of(const ConvolutionProblem& problem, const std::vector<GemmTile>& tiles,
                     const DeviceDescription& device, const Candidate& candidate) {
  const GemmTile& tile = tiles.at(static_cast<std::size_t>(candidate.kernel));
  return std::get<Proposal>(propose_wgrad(problem, tile, device, candidate.parts));
}

}  // namespace

bool WgradImplicitGemmMmaEngine::is_for(const Problem& problem) const { return is_wgrad(problem); }

std::variant<std::vector<Candidate>, Refusal> WgradImplicitGemmMmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const std::int64_t reduction = usual_reduction(problem);
  if (auto refused = mma_refusal(problem, reduction, device)) return refused;
  constexpr std::int64_t least_filters = 16;
  if (auto refused = filters_refusal(problem, least_filters)) return refused;
  return candidates_of(problem, mma_tiles(problem, reduction), device);
}

Proposal WgradImplicitGemmMmaEngine::make(const Problem& any, const DeviceDescription& device,
                                          Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  return proposal_of(problem, mma_tiles(problem, usual_reduction(problem)), device, candidate);
}

bool WgradImplicitGemmFmaEngine::is_for(const Problem& problem) const { return is_wgrad(problem); }

std::variant<std::vector<Candidate>, Refusal> WgradImplicitGemmFmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  constexpr std::int64_t least_filters = 4;
  if (auto refused = filters_refusal(problem, least_filters)) return refused;
  return candidates_of(problem, wgrad_tiles(problem.type()), device);
}

Proposal WgradImplicitGemmFmaEngine::make(const Problem& any, const DeviceDescription& device,
                                          Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  return proposal_of(problem, wgrad_tiles(problem.type()), device, candidate);
}

}  // namespace kiln
