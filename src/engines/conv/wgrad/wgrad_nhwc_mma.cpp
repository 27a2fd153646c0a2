#include "engines/conv/wgrad/wgrad_nhwc_mma.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/filter_gradient/layout.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/vector_copies.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/cost/dense_cost.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

constexpr std::int64_t vector_bytes = copied_bytes;
constexpr std::int64_t fragment_bytes = 32;  // of the reduction

// A warp reads its operands from shared memory once for all of its products; with 64x64 a warp,
// shared memory and the tensor cores are equally busy. Two blocks of four warps hide each other's
// waits; one block of eight warps, 128x256, was never the fastest
// (kernel_sources/conv/wgrad/README.md). 3xTF32 sums are promoted and take twice the registers.
constexpr WgradTile whole_tiles[] = {
    {.m = 128, .n = 192, .thread_m = 8, .thread_n = 12},
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 16, .min_blocks = 2},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 16, .min_blocks = 2},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .min_blocks = 2},
    {.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
};
constexpr WgradTile split_tiles[] = {
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .min_blocks = 2},
    {.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
};

bool fits(const WgradTile& tile, const DeviceDescription& device) {
  return fits_shared_memory(tile.shared_memory(), tile.min_blocks, device);
}

// The distance in elements from each pixel of dy to the next; 0 if it is not constant.
std::int64_t gradient_step(const Gather& gather) {
  const Spatial& pixels = gather.phases.front().pixels;
  const Dims& s = gather.out_strides;
  std::int64_t step = 0, count = 1;
  for (const int i : {4, 3, 2, 0}) {
    const std::int64_t size = i > 0 ? pixels[i - 2] : 2;  // the kernel serves any batch size
    if (size == 1) continue;
    if (count == 1) step = s[i];
    if (s[i] != step * count) return 0;
    count *= size;
  }
  return step;
}

// Contiguous channels of dw that a thread stores at once, aligned to their size: 2 or 1.
std::int64_t gradient_run(const Gather& gather) {
  const auto even = [](std::int64_t stride) { return stride % 2 == 0; };
  const bool pairs = gather.w_channel == 1 && even(gather.w_row) && even(gather.w_group) &&
                     std::all_of(gather.w_tap.begin(), gather.w_tap.end(), even);
  return pairs ? 2 : 1;
}

Refusal refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  constexpr std::int64_t least_filters = 16;
  if (auto refused = fragment_refusal(problem, usual_reduction(problem), seen.device))
    return refused;
  if (auto refused = filters_refusal(problem, least_filters)) return refused;
  if (auto refused = copies_refusal(problem, copied_source(problem, gather))) return refused;
  return copies_refusal(problem, {"dy", "filters", gather.rows, gather.out_strides});
}

std::vector<WgradTile> lay(const Seen& seen) {
  const bool split = is_split(seen.problem);
  std::vector<WgradTile> out;
  for (WgradTile tile : split ? std::span<const WgradTile>(split_tiles) : whole_tiles) {
    tile.element = static_cast<int>(size_of(seen.problem.type()));
    tile.split = split;
    if (!fits(tile, seen.device)) --tile.stages;
    if (fits(tile, seen.device)) out.push_back(tile);
  }
  return out;
}

// Whether the tile at this split count fits the problem.
Refusal tile_refusal(const WgradTile& tile, const Seen& seen, const Sharing& sharing) {
  if (auto refused = wgrad_count_refusal(seen.problem, tile.m, tile.n, sharing.parts))
    return refused;
  if (wgrad_largest_offset(seen.gather, tile.m, tile.n) > limit32)
    return "offsets within an image or a filter do not fit into 32 bits";
  return {};
}

TileCounts count(const WgradTile& tile, const Seen& seen) {
  return {.all = wgrad_tile_count(seen.problem, tile.m, tile.n)};
}

FragmentShape fragment_shape(const WgradTile& tile) {
  return {.m = tile.m,
          .n = tile.n,
          .thread_m = tile.thread_m,
          .thread_n = tile.thread_n,
          .min_blocks = tile.min_blocks};
}

std::vector<Offer> offers(const WgradTile& tile, const Seen& seen, const TileCounts& tiles) {
  const ConvolutionProblem& problem = seen.problem;
  FragmentWork work;
  work.type = problem.type();
  work.split = tile.split;
  work.shape = fragment_shape(tile);
  work.shared_memory = tile.shared_memory();
  work.tiles = tiles.all;
  work.results = static_cast<double>(operands_of(problem).back().count());
  work.bytes = work_of(problem, false).bytes;
  const std::int64_t pixels = problem.batch * problem.out_pixels();
  const auto steps = static_cast<double>(ceil_div(pixels, tile.stage_pixels()));
  work.fragments = steps * tile.fragments;
  work.transposed = true;
  work.all_registers = tile.thread_m * tile.thread_n >= 64;
  work.copies = work.fragments * (tile.m + tile.n) * fragment_bytes / vector_bytes;
  work.copy_bytes = vector_bytes;
  const double singles =
      taps_side_by_side(seen.gather) ? single_results_seconds(work.results, seen.device) : 0;
  std::vector<Offer> out;
  for (const int parts : parts_of(seen.device, steps, std::end(cluster_sizes)[-1]))
    out.push_back({{parts}, fragment_seconds(work, parts, seen.device) + singles});
  return out;
}

int threads(const WgradTile& tile) { return tile.threads(); }
std::uint32_t shared_memory(const WgradTile& tile, const Seen& /*seen*/) {
  return tile.shared_memory();
}
std::size_t alignment(const Seen& /*seen*/) { return vector_bytes; }

void write(KernelSpec& spec, const WgradTile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  spec.constants = gather_constants(problem, gather);
  const ConstantWriter add(spec.constants);
  add_wgrad_constants(spec.constants, gather, tile.m, tile.n, true);
  add("TAP_MASK", false);
  add_fragment_constants(spec.constants, fragment_shape(tile), problem, tile.element == 2 ? 1 : 4);
  add("STAGES", std::int64_t{tile.stages});
  add("STAGE_FRAGMENTS", std::int64_t{tile.fragments},
      "fragments, 32 bytes of pixels each, in a stage");
  add("PITCH_PAD", transposed_pad(tile.element), "bytes of padding of a line");
  add("LINES_ALONG_M", false);
  add("DW_RUN", gradient_run(gather), "columns that are contiguous in dw");
  add("GRADIENT_STEP", gradient_step(gather),
      "elements from pixel to pixel of dy; 0: not constant");

  // The tensor cores round sums toward zero, so the error between promotions grows with their
  // distance. 3xTF32 has to be as exact as f32's own sums; elements of 11 bits lose nothing that
  // matters over 256 additions of 8 or 16 products each.
  add_split_constants(spec.constants, tile.split, least_reduction(problem));
  add_checked_constant(spec.constants, problem, true, false);
  const std::int64_t run = promotion_run(usual_reduction(problem));
  const std::int64_t promote = tile.split ? run / tile.stage_pixels() : 256 / tile.fragments;
  add("PROMOTE", std::max<std::int64_t>(promote, 1), "stages between promotions");
  add("PROMOTE_LOCAL", !tile.split);
}

}  // namespace

std::int64_t WgradTile::stage_pixels() const { return fragments * fragment_bytes / element; }

std::uint32_t WgradTile::shared_memory() const {
  const std::int64_t pitches = (m + n) * element + 2 * transposed_pad(element);
  return static_cast<std::uint32_t>(stages * stage_pixels() * pitches);
}

std::string describe(const WgradTile& tile) {
  return cat(tile.m, "x", tile.n, ", ", tile.thread_m, "x", tile.thread_n, " a thread, ",
             tile.threads(), " threads, ", tile.stages, " stages of ", tile.stage_pixels(),
             " pixels", tile.split ? ", 3 products" : "");
}

constinit const Recipe<WgradTile> wgrad_nhwc_mma = {
    .name = "wgrad_nhwc_mma",
    .file = "conv/wgrad/wgrad_nhwc_mma.cu",
    .filter_gradient = true,
    .mixed_types = true,
    .refusal = refusal,
    .lay = lay,
    .no_tile = "no tile fits into shared memory",
    .tile_refusal = tile_refusal,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = threads,
    .shared_memory = shared_memory,
    .alignment = alignment,
    .write = write,
};

}  // namespace kiln
