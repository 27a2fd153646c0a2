#include "engines/conv/halo/halo_nchw.hpp"

#include "core/text.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_taps = 16;  // taps in a stage

// Steps of 32 or 64 bytes of channels, because a stage holds a whole group of taps. Tiles are wide,
// because filter elements are gathered once for all pixels of a tile, and source elements once for
// all taps.
constexpr HaloMmaShape whole_shapes[] = {
    {.m = 64, .n = 512, .thread_m = 8, .thread_n = 16, .chunk_steps = 2},
    {.m = 64, .n = 512, .thread_m = 8, .thread_n = 16, .chunk_steps = 1},
    {.m = 128, .n = 256, .thread_m = 8, .thread_n = 16, .chunk_steps = 2},
    {.m = 128, .n = 256, .thread_m = 8, .thread_n = 16, .chunk_steps = 1},
    {.m = 128, .n = 192, .thread_m = 8, .thread_n = 12, .chunk_steps = 2},
    {.m = 128, .n = 192, .thread_m = 8, .thread_n = 12, .chunk_steps = 1},
    {.m = 96, .n = 256, .thread_m = 6, .thread_n = 16, .chunk_steps = 2},
    {.m = 96, .n = 256, .thread_m = 6, .thread_n = 16, .chunk_steps = 1},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 2},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 1},
    {.m = 32, .n = 256, .thread_m = 4, .thread_n = 8, .chunk_steps = 2},
    {.m = 32, .n = 256, .thread_m = 4, .thread_n = 8, .chunk_steps = 1},
};
constexpr HaloMmaShape split_shapes[] = {
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 2},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 1},
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 2},
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 1},
    {.m = 96, .n = 128, .thread_m = 6, .thread_n = 8, .chunk_steps = 2},
    {.m = 96, .n = 128, .thread_m = 6, .thread_n = 8, .chunk_steps = 1},
    {.m = 64, .n = 128, .thread_m = 4, .thread_n = 8, .chunk_steps = 2},
    {.m = 64, .n = 128, .thread_m = 4, .thread_n = 8, .chunk_steps = 1},
    {.m = 32, .n = 256, .thread_m = 4, .thread_n = 8, .chunk_steps = 2},
    {.m = 32, .n = 256, .thread_m = 4, .thread_n = 8, .chunk_steps = 1},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 4, .chunk_steps = 2},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 4, .chunk_steps = 1},
};

// f64: elements take twice the space and sums two registers, so either several blocks of four warps
// share a multiprocessor, or one of eight has it alone.
constexpr HaloMmaShape double_shapes[] = {
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 1},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 1},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 1, .min_blocks = 2},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 2},
    {.m = 48, .n = 128, .thread_m = 6, .thread_n = 8, .chunk_steps = 1, .min_blocks = 2},
    {.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .chunk_steps = 1, .min_blocks = 3},
    {.m = 32, .n = 256, .thread_m = 4, .thread_n = 8, .chunk_steps = 1, .min_blocks = 2},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 8, .chunk_steps = 1, .min_blocks = 3},
};

std::span<const HaloMmaShape> shapes_of(const ConvolutionProblem& problem) {
  if (problem.type() == KILN_DATA_DOUBLE) return double_shapes;
  return is_split(problem) ? std::span<const HaloMmaShape>(split_shapes) : whole_shapes;
}

// A warpgroup computes all rows for 64 or 128 pixels.
constexpr HaloMmaShape whole_warpgroup_shapes[] = {
    warpgroup_shape({.m = 128, .n = 256, .thread_n = 4, .chunk_steps = 1}),
    warpgroup_shape({.m = 128, .n = 128, .thread_n = 2, .chunk_steps = 1}),
    warpgroup_shape({.m = 96, .n = 256, .thread_n = 4, .chunk_steps = 1}),
    warpgroup_shape({.m = 64, .n = 384, .thread_n = 4, .chunk_steps = 1}),
    warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 1}),
    warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 2}),
    warpgroup_shape({.m = 48, .n = 128, .thread_n = 2, .chunk_steps = 2}),
};
constexpr HaloMmaShape split_warpgroup_shapes[] = {
    split_warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 1}),
    split_warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 2}),
    split_warpgroup_shape({.m = 48, .n = 384, .thread_n = 4, .chunk_steps = 1}),
    split_warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .chunk_steps = 1}),
    split_warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .chunk_steps = 2}),
    split_warpgroup_shape({.m = 96, .n = 128, .thread_n = 2, .chunk_steps = 1}),
    split_warpgroup_shape({.m = 48, .n = 128, .thread_n = 2, .chunk_steps = 1}),
    split_warpgroup_shape({.m = 48, .n = 128, .thread_n = 2, .chunk_steps = 2}),
    split_warpgroup_shape({.m = 128, .n = 128, .thread_n = 2, .chunk_steps = 1}),
    split_warpgroup_shape({.m = 32, .n = 128, .thread_n = 2, .chunk_steps = 2}),
    split_warpgroup_shape({.m = 48, .n = 256, .thread_n = 4, .chunk_steps = 1}),
    split_warpgroup_shape({.m = 48, .n = 256, .thread_n = 4, .chunk_steps = 2}),
    split_warpgroup_shape({.m = 64, .n = 192, .thread_n = 2, .chunk_steps = 1}),
    split_warpgroup_shape({.m = 64, .n = 192, .thread_n = 2, .chunk_steps = 2}),
};

}  // namespace

Refusal HaloNchwMmaEngine::layout_refusal(const ConvolutionProblem& problem,
                                          const Gather& gather) const {
  return planar_refusal(problem, gather, most_taps);
}

std::vector<HaloMmaEngine::Shapes> HaloNchwMmaEngine::shapes(const ConvolutionProblem& problem,
                                                             const Gather& gather) const {
  std::vector<Shapes> all;
  for (const int group : tap_groups(gather, most_taps)) all.push_back({shapes_of(problem), group});
  return all;
}

std::size_t HaloNchwMmaEngine::alignment(const ConvolutionProblem& problem) const {
  return size_of(problem.type());
}

Refusal HaloNchwWgmmaSwapEngine::layout_refusal(const ConvolutionProblem& problem,
                                                const Gather& gather) const {
  if (size_of(problem.type()) != 4)
    return Refusal{cat("the data type is ", name_of(problem.type()), "; expected f32")};
  return planar_refusal(problem, gather, most_taps);
}

Refusal HaloNchwWgmmaSwapEngine::products_refusal(const DeviceDescription& device) const {
  return warpgroup_refusal(device);
}

std::vector<HaloMmaEngine::Shapes> HaloNchwWgmmaSwapEngine::shapes(
    const ConvolutionProblem& problem, const Gather& gather) const {
  std::vector<Shapes> all;
  for (const int group : tap_groups(gather, most_taps))
    all.push_back({is_split(problem) ? std::span<const HaloMmaShape>(split_warpgroup_shapes)
                                     : whole_warpgroup_shapes,
                   group});
  return all;
}

std::size_t HaloNchwWgmmaSwapEngine::alignment(const ConvolutionProblem& problem) const {
  return size_of(problem.type());
}

}  // namespace kiln
