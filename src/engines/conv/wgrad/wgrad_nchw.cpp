#include "engines/conv/wgrad/wgrad_nchw.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/vector_copies.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/cost_model.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

// The shapes of wgrad_nhwc_mma, and some of 96 filters for layers with that many. The small one of
// f32 is for gradients so small that a multiprocessor gets only one block.
constexpr FragmentShape whole_shapes[] = {
    {.m = 128, .n = 256, .thread_m = 8, .thread_n = 16},
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 16, .min_blocks = 2},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 16, .min_blocks = 2},
    {.m = 96, .n = 192, .thread_m = 6, .thread_n = 12},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .min_blocks = 2},
    {.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
};
constexpr FragmentShape split_shapes[] = {
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8},
    {.m = 96, .n = 128, .thread_m = 6, .thread_n = 8},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .min_blocks = 2},
    {.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
    {.m = 96, .n = 64, .thread_m = 6, .thread_n = 4, .min_blocks = 2},
};

// f64, as in halo_nchw_mma. A block that has a multiprocessor alone has room for wide bands.
constexpr FragmentShape double_shapes[] = {
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8},
    {.m = 128, .n = 64, .thread_m = 8, .thread_n = 8, .min_blocks = 2},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .min_blocks = 2},
    {.m = 96, .n = 64, .thread_m = 12, .thread_n = 4},
    {.m = 48, .n = 128, .thread_m = 6, .thread_n = 8, .min_blocks = 2},
    {.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .min_blocks = 3},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 8, .min_blocks = 3},
};

// For wgmma, whose products have 64 columns of dw as operand A: a thread has all filters of some
// columns. Shapes with slices are for gradients so small that a multiprocessor gets only one block.
constexpr FragmentShape whole_warpgroup_shapes[] = {
    warpgroup_shape({.m = 128, .n = 256, .thread_n = 4}),
    warpgroup_shape({.m = 128, .n = 128, .thread_n = 2}),
    warpgroup_shape({.m = 96, .n = 384, .thread_n = 4}),
    warpgroup_shape({.m = 96, .n = 256, .thread_n = 4}),
    warpgroup_shape({.m = 96, .n = 64, .thread_n = 2, .slices = 3}),
    warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .min_blocks = 2}),
    warpgroup_shape({.m = 48, .n = 128, .thread_n = 4, .slices = 3}),
    warpgroup_shape({.m = 64, .n = 128, .thread_n = 4, .slices = 2}),
    warpgroup_shape({.m = 32, .n = 256, .thread_n = 4, .min_blocks = 2}),
    warpgroup_shape({.m = 128, .n = 128, .thread_n = 4, .slices = 2}),
};
constexpr FragmentShape split_warpgroup_shapes[] = {
    warpgroup_shape({.m = 64, .n = 256, .thread_n = 4}),
    warpgroup_shape({.m = 64, .n = 128, .thread_n = 4, .slices = 2}),
    warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .slices = 2}),
    warpgroup_shape({.m = 48, .n = 128, .thread_n = 4, .slices = 3}),
    warpgroup_shape({.m = 48, .n = 384, .thread_n = 4}),
    warpgroup_shape({.m = 48, .n = 128, .thread_n = 4, .slices = 2}),
    warpgroup_shape({.m = 32, .n = 256, .thread_n = 4}),
    warpgroup_shape({.m = 96, .n = 64, .thread_n = 2, .slices = 3}),
    warpgroup_shape({.m = 96, .n = 128, .thread_n = 2}),
    warpgroup_shape({.m = 128, .n = 64, .thread_n = 2, .slices = 2}),
    warpgroup_shape({.m = 32, .n = 128, .thread_n = 4, .slices = 3}),
};

// How many contiguous columns of dw a thread stores at once, aligned to their size.
std::int64_t gradient_run(const ConvolutionProblem& problem, const Gather& gather) {
  const Spatial& taps = gather.phases.front().taps;
  const auto even = [](std::int64_t n) { return n % 2 == 0; };
  const auto follows = [](std::int64_t size, std::int64_t stride, std::int64_t step) {
    return size == 1 || stride == step;
  };
  const bool dense = follows(taps[2], gather.w_tap[2], 1) &&
                     follows(taps[1], gather.w_tap[1], taps[2]) &&
                     follows(gather.channels, gather.w_channel, taps[1] * taps[2]);
  const bool pairs = dense && even(gather.channels * taps[1] * taps[2]) && even(gather.w_row) &&
                     even(gather.w_group) &&
                     problem.alignment >= 2 * static_cast<std::int64_t>(size_of(problem.type()));
  return pairs ? 2 : 1;
}

Refusal refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather gather = in_lines(seen.gather);
  if (auto refused = mma_refusal(problem, usual_reduction(problem), seen.device)) return refused;
  if (auto refused = plane_refusal(gather)) return refused;
  constexpr std::int64_t least_filters = 16;
  if (auto refused = filters_refusal(problem, least_filters)) return refused;
  if (gather.source[2] > 1 && gather.source_strides[4] != 1)
    return Refusal{"the pixels of a row are not contiguous (stride 1) in x"};
  if (gather.stride[2] > most_line_phases)
    return Refusal{cat("the stride along the width is ", gather.stride[2], "; expected at most ",
                       most_line_phases)};
  if (gather.phases.front().pixels[2] == 1 || gather.out_strides[4] == 1) return {};
  if (gather.out_strides[1] != 1)
    return Refusal{"in dy neither the pixels of a row are contiguous, nor the filters of a pixel"};
  return copies_refusal(problem, {"dy", "filters", gather.rows, gather.out_strides});
}

Refusal warpgroup_products_refusal(const Seen& seen) {
  if (auto refused = matrices_refusal(seen.problem)) return refused;
  if (auto refused = warpgroup_refusal(seen.device)) return refused;
  return refusal(seen);
}

// Whether the offsets that a tile computes within an image or a filter fit into 32 bits.
bool narrow_offsets(const BandTile& tile, const Gather& gather) {
  // Kernels also compute the offsets of a stage's rows and channels beyond the tensors' ends.
  const Dims& s = gather.source_strides;
  const SourceLines& lines = tile.lines;
  const std::int64_t beyond = lines.planes * s[1] + lines.rows * s[3] +
                              lines.words * lines.word_elements() * lines.phases +
                              tile.rows * gather.out_strides[3];
  return wgrad_largest_offset(gather, tile.shape.m, tile.shape.n) + beyond <= limit32;
}

std::vector<BandTile> lay_shapes(std::span<const FragmentShape> shapes, const Seen& seen) {
  const Gather gather = in_lines(seen.gather);
  std::vector<BandTile> out;
  for (const FragmentShape& shape : shapes) {
    const auto tile =
        lay_band(shape, gather, is_split(seen.problem), seen.problem.alignment, seen.device);
    if (tile && narrow_offsets(*tile, gather)) out.push_back(*tile);
  }
  return out;
}
std::vector<BandTile> lay(const Seen& seen) {
  if (seen.problem.type() == KILN_DATA_DOUBLE) return lay_shapes(double_shapes, seen);
  if (is_split(seen.problem)) return lay_shapes(split_shapes, seen);
  return lay_shapes(whole_shapes, seen);
}
std::vector<BandTile> lay_warpgroups(const Seen& seen) {
  if (is_split(seen.problem)) return lay_shapes(split_warpgroup_shapes, seen);
  return lay_shapes(whole_warpgroup_shapes, seen);
}
constexpr const char* no_tile =
    "no band of pixels fits into shared memory, or offsets into 32 bits";

// Whether the tile at this split count fits the problem.
Refusal tile_refusal(const BandTile& tile, const Seen& seen, const Sharing& sharing) {
  if (const std::int64_t fragments = seen.problem.batch * tile.bands * tile.fragments();
      fragments > limit32)
    return cat(fragments, " groups of pixels; expected at most ", limit32);
  return wgrad_count_refusal(seen.problem, tile.shape.m, tile.shape.n, sharing.parts);
}

TileCounts count(const BandTile& tile, const Seen& seen) {
  return {.all = wgrad_tile_count(seen.problem, tile.shape.m, tile.shape.n)};
}

std::vector<Offer> offers(const BandTile& tile, const Seen& seen, const TileCounts& tiles) {
  const ConvolutionProblem& problem = seen.problem;
  const FragmentShape& shape = tile.shape;
  FragmentWork work;
  work.type = problem.type();
  work.split = tile.split;
  work.shape = shape;
  work.shared_memory = static_cast<double>(tile.shared_memory());
  work.tiles = tiles.all;
  work.results = static_cast<double>(operands_of(problem).back().count());
  work.bytes = work_of(problem, false).bytes;
  const auto stages = static_cast<double>(problem.batch * tile.bands);
  work.fragments = stages * static_cast<double>(tile.fragments());
  (shape.columns_left ? work.stages : work.landings) = stages;
  // For other types, filters that are contiguous made no measurable difference.
  work.transposed = problem.type() == KILN_DATA_DOUBLE && tile.filters_inner;
  work.scalar_copies = true;
  work.copies = stages * static_cast<double>(tile.lines.chunks());
  work.copy_bytes = static_cast<double>(tile.lines.chunk * tile.lines.word_bytes());
  work.row_copies = stages * static_cast<double>(tile.gradient_copies());
  work.row_copy_bytes = std::max(tile.copy_bytes, 4);
  work.row_words_beside =
      shape.columns_left && !tile.filters_inner && tile.lines.element == 4 && tile.copy_bytes == 4;
  constexpr int largest = std::end(cluster_sizes)[-1];
  const int most = shape.min_blocks == 1 && !certainly_runs(largest, seen.device) ? 8 : largest;
  const auto seconds = shape.columns_left ? warpgroup_fragment_seconds : fragment_seconds;
  std::vector<Offer> out;
  for (const int parts : parts_of(seen.device, stages, most))
    out.push_back({{parts}, seconds(work, parts, seen.device)});
  return out;
}

int threads(const BandTile& tile) { return tile.shape.threads(); }

void write(KernelSpec& spec, const BandTile& laid, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather gather = in_lines(seen.gather);
  BandTile tile = laid;
  spread_over_banks(tile, gather);
  const FragmentShape& shape = tile.shape;
  spec.shared_memory = static_cast<std::uint32_t>(tile.shared_memory());
  const std::int64_t run = gradient_run(problem, gather);
  spec.alignment = static_cast<std::size_t>(
      std::max({std::int64_t{tile.copy_bytes}, tile.lines.access, run * tile.lines.element}));
  spec.constants = gather_constants(problem, gather);
  const ConstantWriter add(spec.constants);
  add_wgrad_constants(spec.constants, gather, shape.m, shape.n, false);
  add("TAP_MASK", false);
  // If filters are contiguous, a thread reads words of as many rows at a time as divide its rows.
  const bool words = tile.filters_inner && tile.lines.element >= 4;
  const bool pairs = tile.lines.element == 8 || shape.thread_m % 4 != 0;
  const int run_m = shape.columns_left ? 2 : !words ? 1 : pairs ? 2 : 4;
  add_fragment_constants(spec.constants, shape, problem, run_m);
  if (shape.columns_left) add_warpgroup_instruction(spec.constants, shape.m);
  add("STAGES", std::int64_t{2});
  add("LINES_ALONG_M", false);
  add("DW_RUN", run, "columns that are contiguous in dw");
  add("BAND_ROWS", tile.rows, "rows of pixels in a stage");
  add("BAND_COLUMNS", tile.columns);
  add("FILTERS_INNER", tile.filters_inner,
      "filters are contiguous in dy; else the pixels of a row");
  add("FILTERS_PAD", transposed_pad(tile.lines.element), "bytes of padding of a line of dy");
  add("COPY_BYTES", std::int64_t{tile.copy_bytes}, "bytes in one copy of dy");
  add_lines_constants(spec.constants, tile.lines);
  // Promotion as in wgrad_nhwc_mma.
  add_split_constants(spec.constants, tile.split, least_reduction(problem));
  add_checked_constant(spec.constants, problem, true, false);
  const std::int64_t products = promotion_run(usual_reduction(problem));
  const bool rounds = problem.type() != KILN_DATA_DOUBLE;  // toward zero
  add("PROMOTE", tile.split ? products * tile.lines.element / 32 : std::int64_t{rounds ? 256 : 0},
      "fragments of the reduction between promotions");
  add("PROMOTE_LOCAL", rounds && !tile.split);
}

}  // namespace

constinit const Recipe<BandTile> wgrad_nchw_mma = {
    .name = "wgrad_nchw_mma",
    .file = "conv/wgrad/wgrad_nchw_mma.cu",
    .filter_gradient = true,
    .refusal = refusal,
    .lay = lay,
    .no_tile = no_tile,
    .tile_refusal = tile_refusal,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = threads,
    .write = write,
};

constinit const Recipe<BandTile> wgrad_nchw_wgmma_swap = {
    .name = "wgrad_nchw_wgmma_swap",
    .file = "conv/wgrad/wgrad_nchw_wgmma_swap.cu",
    .filter_gradient = true,
    .refusal = warpgroup_products_refusal,
    .lay = lay_warpgroups,
    .no_tile = no_tile,
    .tile_refusal = tile_refusal,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = threads,
    .write = write,
};

}  // namespace kiln
