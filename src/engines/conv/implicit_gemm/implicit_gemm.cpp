#include "engines/conv/implicit_gemm/implicit_gemm.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/implicit_gemm/layout.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/cost/cost_model.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

using implicit_gemm::columns_together;
using implicit_gemm::filter_step;
using implicit_gemm::fixed_geometry;
using implicit_gemm::images_inner;
using implicit_gemm::output_rows_inner;
using implicit_gemm::output_runs;
using implicit_gemm::pixel_lanes_on_k;
using implicit_gemm::row_lanes_on_k;
using implicit_gemm::wide_offsets;
using implicit_gemm::Widths;

// Products of a sum, in the longest phase.
std::int64_t reduction_of(const Gather& gather) { return gather.channels * gather.most_taps(); }

GemmStages stages_of(const GemmTile& tile, const Gather& gather) {
  return {tile, gather.type, row_lanes_on_k(gather), pixel_lanes_on_k(gather)};
}

// On the FMA units, f32 in square tiles whose pixels follow each other in an image runs 1 to 2%
// faster without most of ptxas's optimizations. Everything else runs up to 30% slower, or varies
// (src/compile/README.md).
bool needs_few_optimizations(const Gather& gather, const GemmTile& tile, DataType type) {
  return !tile.mma() && type == KILN_DATA_FLOAT && tile.m == tile.n && !images_inner(gather);
}

// The number of tiles after which phases take turns; 0 if they do not. Normally phases are computed
// one after the other, those with the longest tiles first. But if pixels of several phases share a
// memory sector and the output is large, taking turns keeps a sector in L2 until its last pixel is
// stored.
std::int64_t phase_tiles(const Gather& gather, const GemmTile& tile,
                         const DeviceDescription& device) {
  constexpr double sector = 32;  // bytes
  // At most half of L2, in a power of 2, so that chips of about one size share kernels. The host
  // device counts as a chip with a small cache, so that tests run this.
  const double in_cache =
      device.kind == KILN_DEVICE_HOST
          ? 160 << 10
          : static_cast<double>(std::bit_floor(static_cast<std::uint64_t>(device.l2_bytes) / 2));
  const auto element = static_cast<double>(size_of(gather.type));
  if (gather.phases.size() == 1 || static_cast<double>(gather.out_strides[4]) * element >= sector)
    return 0;
  const double bytes = static_cast<double>(gather.rows) * static_cast<double>(gather.groups) *
                       static_cast<double>(gather.phases.size()) * tile.n * element;
  return static_cast<std::int64_t>(std::max(in_cache / bytes, 1.0));
}

void write(KernelSpec& spec, const GemmTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const bool inner = images_inner(gather), fixed = fixed_geometry(gather);
  const GemmStages stages = stages_of(tile, gather);
  spec.quick_assembly = needs_few_optimizations(gather, tile, problem.type());
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };

  const std::int64_t reduction = reduction_of(gather);
  const Spatial taps = gather.largest_taps();
  add("REDUCTION", reduction, "products of a sum, in the longest phase");
  add("WHOLE_K_TILES", fixed && reduction % tile.k == 0);
  add("FIXED", fixed, "one phase, pixels counted image by image, no tap skipped");
  add("CHANNELS_INNER", gather.channels_inner());
  add("IMAGES_INNER", inner, "a tile holds the same few places of many images");
  add("PHASE_TILES", phase_tiles(gather, tile, seen.device),
      "tiles after which the next phase takes its turn; 0: none does");
  add("COLUMNS_TOGETHER", std::int64_t{columns_together(gather)},
      "contiguous columns of a row in a place");
  add("TAPS_T", taps[0]);
  add("TAPS_R", taps[1]);
  add("TAPS_S", taps[2]);
  add("TAPS_IN_DEPTH", taps[0] > 1);
  add("TAP_MASK", taps[0] + taps[1] + taps[2] <= 32);
  const bool z_alike = gather.z_strides == gather.out_strides;
  const Widths wide = wide_offsets(gather, tile, gather.z_strides);
  add("offset_t", TypeName{wide.source ? "long long" : "int"});
  // If pixels are counted image by image, offsets are counted from a tile's first image, else from
  // image 0.
  add("pixel_offset_t", TypeName{wide.source || inner ? "long long" : "unsigned"});
  add("out_offset_t", TypeName{wide.out || inner ? "long long" : "int"});

  add_gemm_constants(spec.constants, tile, stages, problem.type(), seen.device);
  add_checked_constant(spec.constants, problem, tile.mma(), true);
  add("PIXEL_LANES_ON_K", pixel_lanes_on_k(gather));
  add("FILTER_LANES_ON_K", row_lanes_on_k(gather));
  const std::int64_t step = fixed ? filter_step(gather) : 0;
  add("FILTER_K_LINEAR", step != 0);
  add("FILTER_K_STEP", step);
  const bool rows_inner = output_rows_inner(gather);
  add("LINES_ALONG_M", rows_inner);
  add("OUTPUT_VECTOR", z_alike && output_runs(gather, stages.vector));
  add("Z_LIKE_OUT", z_alike);

  // Divisors, each with its largest dividend. They are the first phase's; kernels use them if there
  // is only one.
  const auto divisor = [](std::int64_t d, std::int64_t max_dividend) {
    return make_magic(static_cast<std::uint32_t>(std::max<std::int64_t>(d, 1)),
                      static_cast<std::uint32_t>(max_dividend));
  };
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t pixel_bound = phase.out_pixels() + 2 * tile.n;
  const std::int64_t k_bound = reduction + 2 * tile.k;
  const std::int64_t tiles_m = ceil_div(gather.rows, tile.m);
  add("BLOCK_DIV_OPQ", make_wide_magic(static_cast<std::uint64_t>(phase.out_pixels())));
  add("DIV_OPQ", divisor(phase.out_pixels(), pixel_bound));
  add("DIV_PQ", divisor(phase.pixels[1] * phase.pixels[2], pixel_bound));
  add("DIV_Q", divisor(phase.pixels[2], pixel_bound));
  add("DIV_TRS", divisor(phase.tap_count(), k_bound));
  add("DIV_RS", divisor(phase.taps[1] * phase.taps[2], k_bound));
  add("DIV_S", divisor(phase.taps[2], k_bound));
  add("DIV_C", divisor(gather.channels, k_bound));
  add("DIV_TILES", divisor(tiles_m * gather.groups, limit32));
  add("DIV_TILES_M", divisor(tiles_m, tiles_m * gather.groups));
}

TileCounts count(const GemmTile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  const std::int64_t of_phase = ceil_div(seen.problem.batch * gather.most_pixels(), tile.n);
  return {of_phase, of_phase * static_cast<std::int64_t>(gather.phases.size()) *
                        ceil_div(gather.rows, tile.m) * gather.groups};
}

Refusal tile_refusal(const GemmTile& tile, const Seen& seen, const Sharing& /*sharing*/) {
  const Gather& gather = seen.gather;
  const std::int64_t reduction = reduction_of(gather), batch = seen.problem.batch;
  if (gather.most_pixels() > limit32 - 2 * tile.n)
    return cat(gather.most_pixels(), " pixels in an image of the output; at most ",
               limit32 - 2 * tile.n, " can be counted in 32 bits");
  if (const std::int64_t most = (limit32 - 2 * tile.n) / columns_together(gather); batch > most)
    return cat(batch, " images; at most ", most, " can be counted in 32 bits");
  if (reduction > limit32 - 2 * tile.k)
    return cat(reduction, " products a sum; at most ", limit32 - 2 * tile.k,
               " can be counted in 32 bits");
  // RuntimeDivisor's condition.
  constexpr std::int64_t limit_unsigned = std::numeric_limits<std::uint32_t>::max();
  if (!fixed_geometry(gather) && (reduction + 2 * tile.k) * gather.most_taps() > limit_unsigned)
    return cat(reduction, " products a sum of ", gather.most_taps(), " taps; their product may be ",
               limit_unsigned, " at most");
  return stages_refusal(stages_of(tile, gather).bytes(tile, gather.type), seen.device);
}

GemmWork work_of_tile(const GemmTile& tile, const Seen& seen, std::int64_t tiles) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  GemmWork work;
  work.type = problem.type();
  work.tiles = tiles;
  work.results = static_cast<double>(operands_of(problem).back().count());
  const auto most = static_cast<double>(gather.most_taps());
  // A tile of one place of many images visits the taps inside the source at that place; one of
  // several places, the taps inside for any of them; else all taps of its phase.
  double taps = gather.mean_taps();
  if (images_inner(gather)) {
    const std::int64_t together = columns_together(gather);
    const std::int64_t of_place = std::max<std::int64_t>(problem.batch, 1) * together;
    taps = gather.walked_taps(ceil_div(tile.n, of_place) * together);
  }
  const double least = 1 / std::max(static_cast<double>(gather.channels), 1.0);  // not 0
  work.largest = most / std::max(taps, least);
  work.steps = static_cast<double>(gather.channels) * std::max(taps, least) / tile.k;
  work.bounds = gather.leaves_source(0) || gather.leaves_source(1) || gather.leaves_source(2);
  work.stores = output_runs(gather, stages_of(tile, gather).vector) ? ResultStores::vectors
                : output_rows_inner(gather)                         ? ResultStores::scattered
                                                                    : ResultStores::neighbours;
  work.bytes = work_of(problem, false).bytes;
  return work;
}

std::vector<Offer> offers(const GemmTile& tile, const Seen& seen, const TileCounts& tiles) {
  constexpr int most_parts = 8;  // larger clusters are not portable and never paid here
  const GemmWork work = work_of_tile(tile, seen, tiles.all);
  std::vector<Offer> out;
  for (const int parts : parts_of(seen.device, work.steps, most_parts))
    out.push_back({{parts}, gemm_seconds(tile, work, parts, seen.device)});
  return out;
}

// The recipe of an engine with these fields of its own.
constexpr Recipe<GemmTile> recipe(const char* name, const char* file, Refusal refusal(const Seen&),
                                  std::vector<GemmTile> lay(const Seen&)) {
  return {
      .name = name,
      .file = file,
      .entry = "implicit_gemm",
      .mixed_types = true,
      .group_strides = true,
      .refusal = refusal,
      .lay = lay,
      .no_tile = "there is no tile",
      .tile_refusal = tile_refusal,
      .count = count,
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
  if (auto refused = mma_refusal(seen.problem, reduction_of(seen.gather), seen.device))
    return refused;
  constexpr std::int64_t least_rows = 16;
  return rows_refusal(seen.gather.rows, least_rows);
}

Refusal refusal_of_fma(const Seen& seen) {
  constexpr std::int64_t least_rows = 4;
  return rows_refusal(seen.gather.rows, least_rows);
}

}  // namespace

constinit const Recipe<GemmTile> implicit_gemm_mma =
    recipe("implicit_gemm_mma", "conv/implicit_gemm/implicit_gemm_mma.cu", refusal_of_mma,
           [](const Seen& seen) { return mma_tiles(seen.problem, reduction_of(seen.gather)); });
constinit const Recipe<GemmTile> implicit_gemm_fma =
    recipe("implicit_gemm_fma", "conv/implicit_gemm/implicit_gemm_fma.cu", refusal_of_fma,
           [](const Seen& seen) { return fma_tiles(seen.problem.type()); });

}  // namespace kiln
