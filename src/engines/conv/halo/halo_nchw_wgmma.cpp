// Forward propagation and data gradient in NCHW by wgmma, with the source's halo in shared memory.
#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

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

Refusal refusal(const Seen& seen) {
  if (auto refused = halo::wgmma_refusal(seen)) return refused;
  return planar_refusal(seen);
}

std::vector<HaloWgmmaTile> lay(const Seen& seen) {
  const std::span<const HaloWgmmaShape> shapes =
      is_split(seen.problem) ? std::span<const HaloWgmmaShape>(split_shapes) : whole_shapes;
  std::vector<HaloWgmmaTile> tiles;
  for (const int group : tap_groups(seen.gather)) halo::lay(tiles, shapes, group, seen);
  return tiles;
}

}  // namespace

constinit const Recipe<HaloWgmmaTile> halo_nchw_wgmma =
    halo::recipe("halo_nchw_wgmma", "conv/halo/halo_nchw_wgmma.cu", refusal, lay);

}  // namespace kiln
