#include "engines/conv/wgrad/wgrad_nhwc_mma.hpp"

#include <algorithm>
#include <iterator>
#include <span>

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
constexpr WgradTile tiles[] = {
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

bool fits(const WgradTile& tile, DataType type, const DeviceDescription& device) {
  return fits_shared_memory(tile.shared_memory(type), tile.min_blocks, device);
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

Refusal refusal(const ConvolutionProblem& problem, const Gather& gather) {
  constexpr std::int64_t least_filters = 16;
  if (auto refused = filters_refusal(problem, least_filters)) return refused;
  if (auto refused = copies_refusal(problem, copied_source(problem, gather))) return refused;
  return copies_refusal(problem, {"dy", "filters", gather.rows, gather.out_strides});
}

FragmentShape fragment_shape(const WgradTile& tile) {
  return {.m = tile.m,
          .n = tile.n,
          .thread_m = tile.thread_m,
          .thread_n = tile.thread_n,
          .min_blocks = tile.min_blocks};
}

KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather,
                     const WgradTile& tile) {
  KernelSpec spec;
  spec.engine = "wgrad_nhwc_mma";
  spec.file = "conv/wgrad/wgrad_nhwc_mma.cu";
  spec.entry = "wgrad_nhwc_mma";
  spec.tile = describe(tile, problem);
  spec.shared_memory = tile.shared_memory(problem.type());
  spec.alignment = vector_bytes;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add_wgrad_constants(spec.constants, gather, tile.m, tile.n, true);
  add("TAP_MASK", false);
  const bool half = size_of(problem.type()) == 2, split = is_split(problem);
  add_fragment_constants(spec.constants, fragment_shape(tile), problem, half ? 1 : 4);
  add("STAGES", std::int64_t{tile.stages});
  add("STAGE_FRAGMENTS", std::int64_t{tile.fragments},
      "fragments, 32 bytes of pixels each, in a stage");
  add("PITCH_PAD", transposed_pad(static_cast<std::int64_t>(size_of(problem.type()))),
      "bytes of padding of a line");
  add("LINES_ALONG_M", false);
  add("DW_RUN", gradient_run(gather), "columns that are contiguous in dw");
  add("GRADIENT_STEP", gradient_step(gather),
      "elements from pixel to pixel of dy; 0: not constant");

  // The tensor cores round sums toward zero, so the error between promotions grows with their
  // distance. 3xTF32 has to be as exact as f32's own sums; elements of 11 bits lose nothing that
  // matters over 256 additions of 8 or 16 products each.
  add_split_constants(spec.constants, split, least_reduction(problem));
  add_checked_constant(spec.constants, problem, true, false);
  const std::int64_t run = promotion_run(usual_reduction(problem));
  const std::int64_t promote =
      split ? run / tile.stage_pixels(problem.type()) : 256 / tile.fragments;
  add("PROMOTE", std::max<std::int64_t>(promote, 1), "stages between promotions");
  add("PROMOTE_LOCAL", !split);
  return spec;
}

// The refusal, if the tile at this split count does not fit the problem.
Refusal tile_refusal(const ConvolutionProblem& problem, const Gather& gather, const WgradTile& tile,
                     int parts) {
  if (auto refused = wgrad_count_refusal(problem, tile.m, tile.n, parts)) return refused;
  if (wgrad_largest_offset(gather, tile.m, tile.n) > limit32)
    return Refusal{"offsets within an image or a filter do not fit into 32 bits"};
  return {};
}

FragmentWork work_of_tile(const ConvolutionProblem& problem, const WgradTile& tile) {
  FragmentWork work;
  work.type = problem.type();
  work.split = is_split(problem);
  work.shape = fragment_shape(tile);
  work.shared_memory = tile.shared_memory(problem.type());
  work.tiles = wgrad_tile_count(problem, tile.m, tile.n);
  work.results = static_cast<double>(operands_of(problem).back().count());
  work.bytes = work_of(problem, false).bytes;
  const std::int64_t pixels = problem.batch * problem.out_pixels();
  const auto steps = static_cast<double>(ceil_div(pixels, tile.stage_pixels(problem.type())));
  work.fragments = steps * tile.fragments;
  work.transposed = true;
  work.all_registers = tile.thread_m * tile.thread_n >= 64;
  work.copies = work.fragments * (tile.m + tile.n) * fragment_bytes / vector_bytes;
  work.copy_bytes = vector_bytes;
  return work;
}

}  // namespace

std::int64_t WgradTile::stage_pixels(DataType type) const {
  return fragments * fragment_bytes / static_cast<std::int64_t>(size_of(type));
}

std::uint32_t WgradTile::shared_memory(DataType type) const {
  const auto element = static_cast<std::int64_t>(size_of(type));
  const std::int64_t pitches = (m + n) * element + 2 * transposed_pad(element);
  return static_cast<std::uint32_t>(stages * stage_pixels(type) * pitches);
}

std::vector<WgradTile> wgrad_nhwc_tiles(const ConvolutionProblem& problem,
                                        const DeviceDescription& device) {
  const bool split = is_split(problem);
  std::vector<WgradTile> out;
  for (WgradTile tile : split ? std::span<const WgradTile>(split_tiles) : tiles) {
    if (!fits(tile, problem.type(), device)) --tile.stages;
    if (fits(tile, problem.type(), device)) out.push_back(tile);
  }
  return out;
}

std::variant<Proposal, Refusal> propose_wgrad_nhwc(const ConvolutionProblem& problem,
                                                   const WgradTile& tile, int parts) {
  const Gather gather = make_gather(problem);
  if (auto refused = tile_refusal(problem, gather, tile, parts)) return refused;
  Proposal out{{make_spec(problem, gather, tile), {}}};
  out.first().launch =
      wgrad_launch(problem, wgrad_tile_count(problem, tile.m, tile.n) * parts,
                   static_cast<std::uint32_t>(tile.threads()), out.first().kernel.shared_memory);
  out.first().set_cluster(parts);
  return out;
}

std::string describe(const WgradTile& tile, const ConvolutionProblem& problem) {
  return cat(tile.m, "x", tile.n, ", ", tile.thread_m, "x", tile.thread_n, " a thread, ",
             tile.threads(), " threads, ", tile.stages, " stages of ",
             tile.stage_pixels(problem.type()), " pixels", is_split(problem) ? ", 3 products" : "");
}

bool WgradNhwcMmaEngine::is_for(const Problem& problem) const { return is_wgrad(problem); }

std::variant<std::vector<Candidate>, Refusal> WgradNhwcMmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  if (auto refused = fragment_refusal(problem, usual_reduction(problem), device)) return refused;
  const Gather gather = make_gather(problem);
  if (auto refused = refusal(problem, gather)) return refused;
  const std::vector<WgradTile> fitting = wgrad_nhwc_tiles(problem, device);
  std::vector<WgradOption> options;
  for (const WgradTile& tile : fitting) {
    FragmentWork work = work_of_tile(problem, tile);
    const double stages = work.fragments / tile.fragments;
    options.push_back({work, stages, std::end(cluster_sizes)[-1]});
  }
  const auto refused = [&](std::size_t i, int parts) {
    return tile_refusal(problem, gather, fitting[i], parts);
  };
  auto answer = wgrad_candidates(options, device, refused, "no tile fits into shared memory");
  if (auto* all = std::get_if<std::vector<Candidate>>(&answer); all && taps_side_by_side(gather)) {
    const auto results = static_cast<double>(operands_of(problem).back().count());
    for (Candidate& each : *all) each.seconds += single_results_seconds(results, device);
  }
  return answer;
}

Proposal WgradNhwcMmaEngine::make(const Problem& any, const DeviceDescription& device,
                                  Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const std::vector<WgradTile> fitting = wgrad_nhwc_tiles(problem, device);
  return std::get<Proposal>(propose_wgrad_nhwc(
      problem, fitting.at(static_cast<std::size_t>(candidate.kernel)), candidate.parts));
}

}  // namespace kiln
