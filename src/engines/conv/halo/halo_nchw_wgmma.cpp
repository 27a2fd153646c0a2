#include "engines/conv/halo/halo_nchw_wgmma.hpp"

#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_taps = 16;  // taps in a stage

// Tiles are wide, because filter elements are gathered once for all pixels of a tile. Several
// warpgroups share 64 rows; the more there are, the more threads gather.
constexpr HaloWgmmaShape whole_shapes[] = {
    {.m = 64, .n = 576, .chunk_steps = 2, .stages = 2, .groups_n = 3},
    {.m = 64, .n = 576, .chunk_steps = 1, .stages = 2, .groups_n = 3},
    {.m = 64, .n = 512, .chunk_steps = 2, .stages = 2, .groups_n = 4},
    {.m = 64, .n = 512, .chunk_steps = 2, .stages = 2, .groups_n = 2},
    {.m = 64, .n = 512, .chunk_steps = 1, .stages = 2, .groups_n = 2},
    {.m = 128, .n = 256, .chunk_steps = 2, .stages = 2, .groups_n = 2},
    {.m = 128, .n = 256, .chunk_steps = 1, .stages = 2, .groups_n = 2},
    {.m = 64, .n = 384, .chunk_steps = 2, .stages = 2, .groups_n = 4},
    {.m = 64, .n = 384, .chunk_steps = 2, .stages = 2, .groups_n = 2},
    {.m = 64, .n = 256, .chunk_steps = 2, .stages = 2, .groups_n = 2},
    {.m = 64, .n = 256, .chunk_steps = 1, .stages = 2, .min_blocks = 2},
    {.m = 64, .n = 448, .chunk_steps = 2, .stages = 2, .strips = 1, .groups_n = 4},
    {.m = 64, .n = 448, .chunk_steps = 2, .stages = 2, .strips = 1, .groups_n = 2},
    {.m = 64, .n = 512, .chunk_steps = 2, .stages = 2, .strips = 2, .groups_n = 2},
    {.m = 64, .n = 576, .chunk_steps = 2, .stages = 2, .strips = 3, .groups_n = 3},
};
// 3xTF32 keeps accumulators and totals in registers, so a warpgroup has fewer columns.
constexpr HaloWgmmaShape split_shapes[] = {
    {.m = 64, .n = 384, .chunk_steps = 1, .stages = 2, .groups_n = 2, .split = true},
    {.m = 64, .n = 320, .chunk_steps = 2, .stages = 2, .groups_n = 2, .split = true},
    {.m = 64, .n = 320, .chunk_steps = 1, .stages = 2, .groups_n = 2, .split = true},
    {.m = 64, .n = 256, .chunk_steps = 2, .stages = 2, .groups_n = 2, .split = true},
    {.m = 64, .n = 256, .chunk_steps = 1, .stages = 2, .groups_n = 2, .split = true},
    {.m = 128, .n = 192, .chunk_steps = 1, .stages = 2, .split = true},
    {.m = 64, .n = 288, .chunk_steps = 2, .stages = 2, .groups_n = 3, .split = true},
    {.m = 64, .n = 288, .chunk_steps = 1, .stages = 2, .groups_n = 3, .split = true},
    {.m = 64, .n = 128, .chunk_steps = 1, .stages = 2, .min_blocks = 2, .split = true},
    {.m = 128, .n = 192, .chunk_steps = 1, .stages = 2, .strips = 1, .split = true},
    {.m = 64, .n = 224, .chunk_steps = 1, .stages = 2, .strips = 1, .groups_n = 2, .split = true},
    {.m = 64, .n = 384, .chunk_steps = 1, .stages = 2, .strips = 2, .groups_n = 2, .split = true},
    {.m = 64, .n = 288, .chunk_steps = 1, .stages = 2, .strips = 3, .groups_n = 3, .split = true},
};

}  // namespace

std::optional<Refusal> HaloNchwWgmmaEngine::layout_refusal(const ConvolutionProblem& problem,
                                                           const Gather& gather) const {
  return planar_refusal(problem, gather, most_taps);
}

std::vector<HaloWgmmaEngine::Shapes> HaloNchwWgmmaEngine::shapes(const ConvolutionProblem& problem,
                                                                 const Gather& gather) const {
  std::vector<Shapes> all;
  for (const int group : tap_groups(gather, most_taps))
    all.push_back(
        {is_split(problem) ? std::span<const HaloWgmmaShape>(split_shapes) : whole_shapes, group});
  return all;
}

std::size_t HaloNchwWgmmaEngine::alignment(const ConvolutionProblem& problem) const {
  return size_of(problem.type());
}

}  // namespace kiln
