#include "engines/conv/dense/dense_halo_nhwc_wgmma.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "conv/dense/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/dense/constants.hpp"
#include "engines/conv/dense/launch_maps.hpp"
#include "engines/conv/dense/promotion.hpp"
#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/dense/turned_filter.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/dense_cost.hpp"

namespace kiln {
namespace {

constexpr std::int64_t all_rows[] = {28, 32, 24, 16};  // of a patch

constexpr std::int64_t line_bytes = 128, filter_bytes = 64 * line_bytes;
constexpr std::int64_t halo_slots = 2, most_filter_slots = 8, least_filter_slots = 4;
constexpr std::int64_t most_shared_memory = 227 * 1024;
constexpr int threads = 384;
// Longer sums need promotion (add_dense_promotion), which this engine does not do.
constexpr std::int64_t most_products = 16384;

// The patch of so many rows laid on a problem.
DensePatch lay(std::int64_t rows, const Gather& gather) {
  const auto whole_swizzles = [](std::int64_t bytes) { return round_up(bytes, 1024); };
  const auto element = static_cast<std::int64_t>(size_of(gather.type));
  const Spatial& taps = gather.phases.front().taps;
  DensePatch out;
  out.rows = rows;
  out.halo_columns = 8 + (taps[2] - 1) * std::abs(gather.step[2]);
  out.halo_rows = rows + (taps[1] - 1) * std::abs(gather.step[1]);
  const std::int64_t halos =
      halo_slots * whole_swizzles(out.halo_columns * out.halo_rows * line_bytes);
  const std::int64_t slabs = 2 * whole_swizzles(out.pixels() * 64 * element);
  const auto barriers = [](std::int64_t filters) { return 8 * (2 * filters + 2 * halo_slots + 4); };
  const std::int64_t left = most_shared_memory - halos - slabs - barriers(most_filter_slots);
  out.filter_slots = std::min(left / filter_bytes, most_filter_slots);
  out.shared_memory = out.filter_slots * filter_bytes + halos + slabs + barriers(out.filter_slots);
  return out;
}

std::vector<DensePatch> lay_all(const Seen& seen) {
  constexpr std::int64_t most_box = 256;
  std::vector<DensePatch> patches;
  for (const std::int64_t rows : all_rows)
    if (const DensePatch patch = lay(rows, seen.gather); patch.filter_slots >= least_filter_slots &&
                                                         patch.halo_columns <= most_box &&
                                                         patch.halo_rows <= most_box)
      patches.push_back(patch);
  return patches;
}

TileCounts count(const DensePatch& patch, const Seen& seen) {
  const Spatial& pixels = seen.gather.phases.front().pixels;
  const std::int64_t of_pixels =
      seen.problem.batch * pixels[0] * ceil_div(pixels[1], patch.rows) * ceil_div(pixels[2], 8);
  return {of_pixels, of_pixels * seen.gather.groups * ceil_div(seen.gather.rows, 64)};
}
std::int64_t line_channels(const Gather& gather) {
  return line_bytes / static_cast<std::int64_t>(size_of(gather.type));
}
std::int64_t steps_of(const Gather& gather) {
  return gather.most_taps() * ceil_div(gather.channels, line_channels(gather));
}

std::vector<Offer> offers(const DensePatch& patch, const Seen& seen, const TileCounts& tiles) {
  const ConvolutionProblem& problem = seen.problem;
  DenseHaloWork work;
  work.pixels = patch.pixels();
  work.line_bytes = static_cast<int>(dense_lines(problem, seen.gather, 0).channels *
                                     static_cast<std::int64_t>(size_of(problem.type())));
  work.tiles = tiles.all;
  work.steps = steps_of(seen.gather);
  work.bytes = work_of(problem, false).bytes;
  Offer only;
  only.seconds =
      dense_halo_seconds(work, seen.device) + turned_filter_seconds(problem, seen.device);
  only.workspace = turned_filter_bytes(problem);
  return {only};
}

std::string describe(const DensePatch& patch) {
  return cat("64x", patch.pixels(), ", patches of 8x", patch.rows, ", ", threads, " threads, ",
             patch.filter_slots, " stages of the filter");
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (auto refused = dense_refusal(seen.problem, gather, seen.device)) return refused;
  if (auto refused = dense_results_refusal(seen.problem, gather)) return refused;
  if (gather.phases.size() > 1) return "a data gradient with a stride; this engine takes stride 1";
  for (const std::int64_t stride : gather.stride)
    if (stride != 1) return cat("a stride is ", stride, "; expected 1");
  if (const Spatial& taps = gather.phases.front().taps; taps[1] * taps[2] == 1)
    return "the filter has one tap of a plane, so no input would be reused";
  if (const std::int64_t products = steps_of(gather) * line_channels(gather);
      products > most_products)
    return Refusal{cat("each output is a sum of ", products, " products; expected at most ",
                       most_products, ", because the tensor cores round sums toward zero")};
  for (const auto& [count, tile, what] :
       {std::tuple(gather.channels, line_channels(gather), "input"),
        {gather.rows, std::int64_t{64}, "output"}})
    if (gather.groups > 1 && count % tile != 0)
      return Refusal{cat(count, " ", what, " channels a group; expected a multiple of ", tile,
                         ", so that a tile ends with a group")};
  return {};
}

Refusal tile_refusal(const DensePatch& patch, const Seen& seen, const Sharing& /*sharing*/) {
  if (const std::int64_t tiles = count(patch, seen).all; tiles > limit32 / 2)
    return cat(tiles, " tiles; expected at most ", limit32 / 2);
  return {};
}

void write(KernelSpec& spec, const DensePatch& patch, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const DenseLines lines = dense_lines(problem, gather, 0);
  spec.alignment = 16;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const DensePhase places = dense_phase(gather, gather.phases.front());
  add("LOWER_W", std::vector<std::int64_t>{places.lower[0]});
  add("LOWER_H", std::vector<std::int64_t>{places.lower[1]});
  add("LOWER_D", std::vector<std::int64_t>{places.lower[2]});
  add_dense_space(spec.constants, gather);
  add_dense_lines(spec.constants, lines, problem);
  add("MAY_LACK_TAPS", false);
  add("BLOCK_RIGHT", std::int64_t{patch.pixels()}, "pixels of a patch: columns of operand B");
  add("FILTER_SLOTS", patch.filter_slots);
  add("HALO_SLOTS", halo_slots);
  add("SHARED_BYTES", patch.shared_memory);
  add("FILTER_BY_CHANNELS", filter_by_channels(gather),
      "the rows of w are contiguous, not its channels");
  add("MAPS", dense_map_count(problem, gather));
  add_dense_promotion(spec.constants, steps_of(gather), lines.channels);
  add_sum_registers(spec.constants, 1, patch.pixels() / 8, false, "f32");
  add_warpgroup_instruction(spec.constants, patch.pixels());
}

LaunchSpec launch(const DensePatch& patch, const Seen& seen) {
  const DenseLines lines = dense_lines(seen.problem, seen.gather, 0);
  const std::int64_t tiles = count(patch, seen).all;
  DenseParams params{};
  params.tiles[0] = static_cast<unsigned>(tiles);
  return dense_launch(params, tiles, threads, static_cast<std::uint32_t>(patch.shared_memory),
                      dense_patch_maps(seen.problem, seen.gather,
                                       {lines, patch.halo_columns, patch.halo_rows, patch.rows}),
                      seen);
}

}  // namespace

constinit const Recipe<DensePatch> dense_halo_nhwc_wgmma = {
    .name = "dense_halo_nhwc_wgmma",
    .file = "conv/dense/dense_halo_nhwc_wgmma.cu",
    .refusal = [](const Seen& seen) { return refusal_turned(seen, refusal); },
    .lay = lay_all,
    .no_tile = "the halo of no patch fits into shared memory",
    .tile_refusal = tile_refusal,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = [](const DensePatch&) { return threads; },
    .shared_memory = [](const DensePatch& patch,
                        const Seen&) { return static_cast<std::uint32_t>(patch.shared_memory); },
    .write =
        [](KernelSpec& spec, const DensePatch& patch, const Seen& seen) {
          seen_turned(seen, [&](const Seen& turned) { write(spec, patch, turned); });
        },
    .launch =
        [](const KernelSpec&, const DensePatch& patch, const Seen& seen, const Sharing&) {
          return seen_turned(seen, [&](const Seen& turned) { return launch(patch, turned); });
        },
    .finish =
        [](Proposal& proposal, const DensePatch&, const Seen& seen, const Sharing&) {
          proposal = behind_turned_filter(std::move(proposal), seen.problem);
        },
};

}  // namespace kiln
