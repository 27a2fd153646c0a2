// Forward propagation and data gradient in NHWC, 3xTF32, by wgmma with swapped operands: the filter
// (operand B) in shared memory, pixels (operand A) in registers. The source's halo lies in shared
// memory.
#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

// A warpgroup computes all rows for 64 or 128 pixels.
constexpr HaloMmaShape warpgroup_shapes[] = {
    split_warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 48, .n = 384, .thread_n = 4, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 48, .n = 384, .thread_n = 4, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 48, .n = 256, .thread_n = 4, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 48, .n = 256, .thread_n = 4, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 64, .n = 192, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 64, .n = 192, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 128, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 128, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 96, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 96, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 48, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 48, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 32, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 32, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
};

Refusal refusal(const Seen& seen) {
  if (auto refused = halo_refusal(seen)) return refused;
  if (auto refused = warpgroup_refusal(seen.device)) return refused;
  if (!is_split(seen.problem))
    return "not f32 in default math, which alone is split into three products";
  return channels_last_refusal(seen);
}

std::vector<HaloMmaTile> lay(const Seen& seen) {
  std::vector<HaloMmaTile> tiles;
  halo::lay(tiles, warpgroup_shapes, 1, seen);
  return tiles;
}

}  // namespace

constinit const Recipe<HaloMmaTile> halo_nhwc_wgmma_swap =
    halo::recipe("halo_nhwc_wgmma_swap", "conv/halo/halo_nhwc_wgmma_swap.cu", refusal, lay);

}  // namespace kiln
