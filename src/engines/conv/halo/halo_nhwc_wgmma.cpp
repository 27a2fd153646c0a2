// Forward propagation and data gradient in NHWC by wgmma, with the source's halo in shared memory.
#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

// More places give more products for each filter element; sizes in between fill the
// multiprocessors, or images, more evenly. A wider step has more products for each barrier and
// copy; a narrower one leaves room for the halos of longer lines and wastes fewer channels.
constexpr HaloWgmmaShape line_shapes[] = {
    {.m = 128, .n = 256, .chunk_steps = 4, .stages = 4},
    {.m = 128, .n = 224, .chunk_steps = 4, .stages = 4},
    {.m = 128, .n = 208, .chunk_steps = 4, .stages = 6},
    {.m = 128, .n = 192, .chunk_steps = 4, .stages = 6},
    {.m = 128, .n = 176, .chunk_steps = 4, .stages = 6},
    {.m = 128, .n = 168, .chunk_steps = 4, .stages = 6},
    {.m = 128, .n = 160, .chunk_steps = 4, .stages = 6},
    {.m = 128, .n = 128, .chunk_steps = 4, .stages = 6},
    {.m = 64, .n = 256, .chunk_steps = 4, .stages = 4},
    {.m = 64, .n = 128, .chunk_steps = 4, .stages = 4, .min_blocks = 2},
    {.m = 128, .n = 256, .chunk_steps = 2, .stages = 6},
    {.m = 128, .n = 192, .chunk_steps = 2, .stages = 6},
    {.m = 64, .n = 256, .chunk_steps = 2, .stages = 4, .min_blocks = 2},
    {.m = 128, .n = 256, .chunk_steps = 4, .stages = 4, .strips = 1},
    {.m = 128, .n = 224, .chunk_steps = 4, .stages = 4, .strips = 1},
    {.m = 128, .n = 192, .chunk_steps = 4, .stages = 4, .strips = 1},
    {.m = 128, .n = 256, .chunk_steps = 2, .stages = 6, .strips = 1},
    {.m = 128, .n = 224, .chunk_steps = 2, .stages = 6, .strips = 1},
    {.m = 128, .n = 192, .chunk_steps = 2, .stages = 6, .strips = 1},
    {.m = 64, .n = 192, .chunk_steps = 4, .stages = 4, .strips = 1},
};

Refusal refusal(const Seen& seen) {
  if (auto refused = halo::wgmma_refusal(seen)) return refused;
  if (is_split(seen.problem))
    return "f32 in default math; this engine takes f16, bf16 and tf32 math";
  return channels_last_refusal(seen);
}

std::vector<HaloWgmmaTile> lay(const Seen& seen) {
  std::vector<HaloWgmmaTile> tiles;
  halo::lay(tiles, line_shapes, 1, seen);
  return tiles;
}

}  // namespace

constinit const Recipe<HaloWgmmaTile> halo_nhwc_wgmma =
    halo::recipe("halo_nhwc_wgmma", "conv/halo/halo_nhwc_wgmma.cu", refusal, lay);

}  // namespace kiln
