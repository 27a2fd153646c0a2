#include "engines/conv/wgrad/wgrad_nchw.hpp"

#include <algorithm>
#include <iterator>
#include <span>

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

Refusal refusal(const ConvolutionProblem& problem, const Gather& gather) {
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

// The refusal if the tile at this split count does not fit the problem.
Refusal tile_refusal(const ConvolutionProblem& problem, const Gather& gather, const BandTile& tile,
                     int parts) {
  const FragmentShape& shape = tile.shape;
  if (auto refused = wgrad_count_refusal(problem, shape.m, shape.n, parts)) return refused;
  if (const std::int64_t fragments = problem.batch * tile.bands * tile.fragments();
      fragments > limit32)
    return Refusal{cat(fragments, " groups of pixels; expected at most ", limit32)};
  // Kernels also compute the offsets of a stage's rows and channels beyond the tensors' ends.
  const Dims& s = gather.source_strides;
  const SourceLines& lines = tile.lines;
  const std::int64_t beyond = lines.planes * s[1] + lines.rows * s[3] +
                              lines.words * lines.word_elements() * lines.phases +
                              tile.rows * gather.out_strides[3];
  if (wgrad_largest_offset(gather, shape.m, shape.n) + beyond > limit32)
    return Refusal{"offsets within an image or a filter do not fit into 32 bits"};
  return {};
}

FragmentWork work_of_tile(const ConvolutionProblem& problem, const BandTile& tile) {
  const FragmentShape& shape = tile.shape;
  FragmentWork work;
  work.type = problem.type();
  work.split = is_split(problem);
  work.shape = shape;
  work.shared_memory = static_cast<double>(tile.shared_memory());
  work.tiles = wgrad_tile_count(problem, shape.m, shape.n);
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
  return work;
}

}  // namespace

std::span<const FragmentShape> WgradNchwMmaEngine::shapes(const ConvolutionProblem& problem) const {
  if (problem.type() == KILN_DATA_DOUBLE) return double_shapes;
  return is_split(problem) ? std::span<const FragmentShape>(split_shapes) : whole_shapes;
}
std::span<const FragmentShape> WgradNchwWgmmaSwapEngine::shapes(
    const ConvolutionProblem& problem) const {
  return is_split(problem) ? std::span<const FragmentShape>(split_warpgroup_shapes)
                           : whole_warpgroup_shapes;
}

Refusal WgradNchwWgmmaSwapEngine::products_refusal(const ConvolutionProblem& problem,
                                                   const DeviceDescription& device) const {
  if (auto refused = matrices_refusal(problem)) return refused;
  return warpgroup_refusal(device);
}

bool WgradNchwMmaEngine::is_for(const Problem& problem) const { return is_wgrad(problem); }

std::vector<BandTile> WgradNchwMmaEngine::tiles(const ConvolutionProblem& problem,
                                                const DeviceDescription& device) const {
  const bool split = is_split(problem);
  const Gather gather = in_lines(make_gather(problem));
  std::vector<BandTile> out;
  for (const FragmentShape& shape : shapes(problem))
    if (const auto tile = lay_band(shape, gather, split, problem.alignment, device))
      out.push_back(*tile);
  return out;
}

std::variant<std::vector<Candidate>, Refusal> WgradNchwMmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  if (auto refused = mma_refusal(problem, usual_reduction(problem), device)) return refused;
  if (auto refused = products_refusal(problem, device)) return refused;
  const Gather gather = in_lines(make_gather(problem));
  if (auto refused = refusal(problem, gather)) return refused;
  const std::vector<BandTile> fitting = tiles(problem, device);
  std::vector<WgradOption> options;
  for (const BandTile& tile : fitting) {
    constexpr int largest = std::end(cluster_sizes)[-1];
    const int most = tile.shape.min_blocks == 1 && !certainly_runs(largest, device) ? 8 : largest;
    options.push_back(
        {work_of_tile(problem, tile), static_cast<double>(problem.batch * tile.bands), most});
  }
  const auto refused = [&](std::size_t i, int parts) {
    return tile_refusal(problem, gather, fitting[i], parts);
  };
  return wgrad_candidates(options, device, refused, "no band of pixels fits into shared memory");
}

Proposal WgradNchwMmaEngine::make(const Problem& any, const DeviceDescription& device,
                                  Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  return propose(tiles(problem, device).at(static_cast<std::size_t>(candidate.kernel)), problem,
                 candidate.parts);
}

KernelSpec WgradNchwMmaEngine::make_spec(const ConvolutionProblem& problem, const Gather& gather,
                                         const BandTile& tile) const {
  const FragmentShape& shape = tile.shape;
  KernelSpec spec;
  spec.engine = name();
  spec.file = cat("conv/wgrad/", name(), ".cu");
  spec.entry = name();
  spec.tile = cat(describe(tile), tile.split ? ", 3 products" : "");
  spec.shared_memory = static_cast<std::uint32_t>(tile.shared_memory());
  const std::int64_t run = gradient_run(problem, gather);
  spec.alignment = static_cast<std::size_t>(
      std::max({std::int64_t{tile.copy_bytes}, tile.lines.access, run * tile.lines.element}));
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
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
  return spec;
}

Proposal WgradNchwMmaEngine::propose(BandTile tile, const ConvolutionProblem& problem,
                                     int parts) const {
  const Gather gather = in_lines(make_gather(problem));
  spread_over_banks(tile, gather);
  Proposal out{{make_spec(problem, gather, tile), {}}};
  out.first().launch = wgrad_launch(
      problem, wgrad_tile_count(problem, tile.shape.m, tile.shape.n) * parts,
      static_cast<std::uint32_t>(tile.shape.threads()), out.first().kernel.shared_memory);
  out.first().set_cluster(parts);
  return out;
}

}  // namespace kiln
