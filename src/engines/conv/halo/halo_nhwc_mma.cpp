// Forward propagation and data gradient in NHWC by mma.sync, with the source's halo in shared
// memory.
#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

// Tiles of which two blocks share a multiprocessor.
constexpr HaloMmaShape two_blocks(HaloMmaShape shape) {
  shape.min_blocks = 2;
  return shape;
}

// Accumulators are 32 bits whatever the operands. 3xTF32 also keeps totals in registers, so its
// tiles are half as large. A wider step has more products for each barrier and copy; a narrower one
// leaves room for more of the image.
constexpr HaloMmaShape whole_shapes[] = {
    {.m = 128, .n = 256, .thread_m = 8, .thread_n = 16, .chunk_steps = 4, .stages = 3},
    {.m = 128, .n = 256, .thread_m = 8, .thread_n = 16, .chunk_steps = 2, .stages = 4},
    {.m = 128, .n = 224, .thread_m = 8, .thread_n = 14, .chunk_steps = 4, .stages = 3},
    {.m = 128, .n = 192, .thread_m = 8, .thread_n = 12, .chunk_steps = 4, .stages = 3},
    {.m = 128, .n = 192, .thread_m = 8, .thread_n = 12, .chunk_steps = 2, .stages = 4},
    two_blocks({.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 4}),
    two_blocks({.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 3}),
    {.m = 96, .n = 256, .thread_m = 6, .thread_n = 16, .chunk_steps = 4, .stages = 3},
    {.m = 96, .n = 256, .thread_m = 6, .thread_n = 16, .chunk_steps = 2, .stages = 4},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 4, .stages = 3},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    {.m = 32, .n = 256, .thread_m = 4, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    two_blocks({.m = 128, .n = 64, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 4}),
    two_blocks({.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .chunk_steps = 2, .stages = 4}),
};
constexpr HaloMmaShape split_shapes[] = {
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 4, .stages = 3},
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    {.m = 96, .n = 128, .thread_m = 6, .thread_n = 8, .chunk_steps = 4, .stages = 3},
    {.m = 96, .n = 128, .thread_m = 6, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    {.m = 64, .n = 128, .thread_m = 4, .thread_n = 8, .chunk_steps = 4, .stages = 3},
    {.m = 64, .n = 128, .thread_m = 4, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 4, .chunk_steps = 2, .stages = 4},
    two_blocks({.m = 128, .n = 64, .thread_m = 8, .thread_n = 8, .chunk_steps = 4, .stages = 3}),
    two_blocks({.m = 128, .n = 64, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 4}),
    two_blocks({.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .chunk_steps = 4, .stages = 3}),
    two_blocks({.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .chunk_steps = 2, .stages = 4}),
};

Refusal refusal(const Seen& seen) {
  if (auto refused = halo_refusal(seen)) return refused;
  if (auto refused = matrices_refusal(seen.problem)) return refused;
  return channels_last_refusal(seen);
}

std::vector<HaloMmaTile> lay(const Seen& seen) {
  std::vector<HaloMmaTile> tiles;
  const bool split = is_split(seen.problem);
  halo::lay(tiles, split ? std::span<const HaloMmaShape>(split_shapes) : whole_shapes, 1, seen);
  return tiles;
}

}  // namespace

constinit const Recipe<HaloMmaTile> halo_nhwc_mma =
    halo::recipe("halo_nhwc_mma", "conv/halo/halo_nhwc_mma.cu", refusal, lay);

}  // namespace kiln
