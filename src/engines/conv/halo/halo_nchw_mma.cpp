// Forward propagation and data gradient in NCHW by mma.sync, with the source's halo in shared
// memory.
#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

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

Refusal refusal(const Seen& seen) {
  if (auto refused = halo_refusal(seen)) return refused;
  return planar_refusal(seen);
}

std::vector<HaloMmaTile> lay(const Seen& seen) {
  std::vector<HaloMmaTile> tiles;
  for (const int group : tap_groups(seen.gather))
    halo::lay(tiles, shapes_of(seen.problem), group, seen);
  return tiles;
}

}  // namespace

constinit const Recipe<HaloMmaTile> halo_nchw_mma =
    halo::recipe("halo_nchw_mma", "conv/halo/halo_nchw_mma.cu", refusal, lay);

}  // namespace kiln
