// Forward propagation and data gradient of f32 in NCHW by wgmma with swapped operands: the filter
// (operand B) in shared memory, pixels (operand A) in registers. The source's halo lies in shared
// memory.
#include "core/text.hpp"
#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

// A warpgroup computes all rows for 64 or 128 pixels.
constexpr HaloMmaShape whole_shapes[] = {
    warpgroup_shape({.m = 128, .n = 256, .thread_n = 4, .chunk_steps = 1}),
    warpgroup_shape({.m = 128, .n = 128, .thread_n = 2, .chunk_steps = 1}),
    warpgroup_shape({.m = 96, .n = 256, .thread_n = 4, .chunk_steps = 1}),
    warpgroup_shape({.m = 64, .n = 384, .thread_n = 4, .chunk_steps = 1}),
    warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 1}),
    warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 2}),
    warpgroup_shape({.m = 48, .n = 128, .thread_n = 2, .chunk_steps = 2}),
};
constexpr HaloMmaShape split_shapes[] = {
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

Refusal refusal(const Seen& seen) {
  if (auto refused = halo_refusal(seen)) return refused;
  if (auto refused = warpgroup_refusal(seen.device)) return refused;
  if (size_of(seen.problem.type()) != 4)
    return cat("the data type is ", name_of(seen.problem.type()), "; expected f32");
  return planar_refusal(seen);
}

std::vector<HaloMmaTile> lay(const Seen& seen) {
  std::vector<HaloMmaTile> tiles;
  const bool split = is_split(seen.problem);
  for (const int group : tap_groups(seen.gather))
    halo::lay(tiles, split ? std::span<const HaloMmaShape>(split_shapes) : whole_shapes, group,
              seen);
  return tiles;
}

}  // namespace

constinit const Recipe<HaloMmaTile> halo_nchw_wgmma_swap =
    halo::recipe("halo_nchw_wgmma_swap", "conv/halo/halo_nchw_wgmma_swap.cu", refusal, lay);

}  // namespace kiln
