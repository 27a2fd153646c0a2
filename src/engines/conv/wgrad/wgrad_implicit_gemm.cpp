#include "engines/conv/wgrad/wgrad_implicit_gemm.hpp"

#include <algorithm>
#include <iterator>

#include "core/text.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/cost/cost_model.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

// Small tiles for few, long reductions: larger tiles would leave multiprocessors idle. Several
// slices of a block share the reduction of one tile.
constexpr GemmTile sliced_tiles[] = {
    {.m = 96, .n = 64, .k = 8, .thread_m = 12, .thread_n = 8, .stages = 4, .slices = 4},
    packed(2, 90,
           {.m = 64, .n = 64, .k = 8, .thread_m = 8, .thread_n = 8, .stages = 4, .slices = 4}),
    packed(2, 90,
           {.m = 32, .n = 64, .k = 8, .thread_m = 4, .thread_n = 8, .stages = 4, .slices = 4}),
};
constexpr GemmTile sliced_double_tiles[] = {
    {.m = 32, .n = 64, .k = 8, .thread_m = 8, .thread_n = 8, .stages = 3, .slices = 8},
    {.m = 32, .n = 32, .k = 8, .thread_m = 4, .thread_n = 4, .stages = 3, .slices = 4},
};
constexpr GemmTile sliced_half_tiles[] = {
    packed(2, 90,
           {.m = 64, .n = 64, .k = 8, .thread_m = 8, .thread_n = 8, .stages = 2, .slices = 4}),
    packed(2, 90,
           {.m = 32, .n = 64, .k = 8, .thread_m = 4, .thread_n = 8, .stages = 2, .slices = 4}),
};

// Whether neighbouring lanes load along the reduction, from dy and from x.
bool dy_lanes_on_k(const Gather& gather) { return gather.out_strides[1] != 1 || gather.rows == 1; }
bool x_lanes_on_k(const Gather& gather) { return !gather.channels_inner(); }

GemmStages stages_of(const GemmTile& tile, const Gather& gather) {
  return {tile, gather.type, dy_lanes_on_k(gather), x_lanes_on_k(gather)};
}

void write(KernelSpec& spec, const GemmTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add_wgrad_constants(spec.constants, gather, tile.m, tile.n, gather.channels_inner());
  const Spatial& taps = gather.phases.front().taps;
  add("TAP_MASK", taps[0] + taps[1] + taps[2] < 32);
  add_gemm_constants(spec.constants, tile, stages_of(tile, gather), problem.type(), seen.device);
  add_checked_constant(spec.constants, problem, tile.mma(), false);
  add("X_LANES_ON_K", x_lanes_on_k(gather));
  add("DY_LANES_ON_K", dy_lanes_on_k(gather));
  add("LINES_ALONG_M", false);
}

std::vector<GemmTile> fma_tiles_and_sliced(const Seen& seen) {
  const DataType type = seen.problem.type();
  std::vector<GemmTile> tiles = fma_tiles(type);
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

Refusal tile_refusal(const GemmTile& tile, const Seen& seen, const Sharing& sharing) {
  if (auto refused = wgrad_count_refusal(seen.problem, tile.m, tile.n, sharing.parts))
    return refused;
  return stages_refusal(stages_of(tile, seen.gather).bytes(tile, seen.gather.type), seen.device);
}

std::vector<Offer> offers(const GemmTile& tile, const Seen& seen, const TileCounts& tiles) {
  const ConvolutionProblem& problem = seen.problem;
  GemmWork work;
  work.type = problem.type();
  work.tiles = tiles.all;
  work.steps = static_cast<double>(problem.batch * problem.out_pixels()) / tile.k;
  work.results = static_cast<double>(operands_of(problem).back().count());
  work.bounds = true;                     // at least the last pixels need bounds checks
  work.stores = ResultStores::scattered;  // columns of dw may have any layout
  work.bytes = work_of(problem, false).bytes;
  std::vector<Offer> out;
  for (const int parts :
       parts_of(seen.device, work.steps / tile.slices, std::end(cluster_sizes)[-1]))
    out.push_back({{parts}, gemm_seconds(tile, work, parts, seen.device)});
  return out;
}

// The recipe of an engine with these fields of its own.
constexpr Recipe<GemmTile> recipe(const char* name, const char* file, Refusal refusal(const Seen&),
                                  std::vector<GemmTile> lay(const Seen&)) {
  return {
      .name = name,
      .file = file,
      .entry = "wgrad_implicit_gemm",
      .filter_gradient = true,
      .mixed_types = true,
      .refusal = refusal,
      .lay = lay,
      .no_tile = "there is no tile",
      .tile_refusal = tile_refusal,
      .count = [](const GemmTile& tile, const Seen& seen) -> TileCounts {
        return {.all = wgrad_tile_count(seen.problem, tile.m, tile.n)};
      },
      .offers = offers,
      .describe = describe,
      .threads = [](const GemmTile& tile) { return tile.threads(); },
      .shared_memory =
          [](const GemmTile& tile, const Seen& seen) {
            return stages_of(tile, seen.gather).bytes(tile, seen.gather.type);
          },
      .write = write,
  };
}

Refusal refusal_of_mma(const Seen& seen) {
  const std::int64_t reduction = usual_reduction(seen.problem);
  if (auto refused = mma_refusal(seen.problem, reduction, seen.device)) return refused;
  constexpr std::int64_t least_filters = 16;
  return filters_refusal(seen.problem, least_filters);
}

Refusal refusal_of_fma(const Seen& seen) {
  constexpr std::int64_t least_filters = 4;
  return filters_refusal(seen.problem, least_filters);
}

}  // namespace

constinit const Recipe<GemmTile> wgrad_implicit_gemm_mma =
    recipe("wgrad_implicit_gemm_mma", "conv/wgrad/wgrad_implicit_gemm_mma.cu", refusal_of_mma,
           [](const Seen& seen) { return mma_tiles(seen.problem, usual_reduction(seen.problem)); });
constinit const Recipe<GemmTile> wgrad_implicit_gemm_fma =
    recipe("wgrad_implicit_gemm_fma", "conv/wgrad/wgrad_implicit_gemm_fma.cu", refusal_of_fma,
           fma_tiles_and_sliced);

}  // namespace kiln
