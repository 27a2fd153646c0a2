// The second step of a depthwise filter gradient, for which groups of blocks have left their sums
// in the workspace. Each thread adds up one element in the order of the groups and stores it to dw.
#include "conv/geometry/depthwise_wgrad_tile.cuh"

KILN_KERNEL(wgrad_depthwise_finish, 128, 1, DepthwiseWgradParams, params) {
  const u32 at = block_x() * 128 + thread_x();
  if (at >= params.elements) return;
  compute_t total = 0;
#pragma unroll 8
  for (u32 group = 0; group < params.groups; ++group) total += partials_of(params, group, 0)[at];
  const u32 tile = at / TILE_ELEMENTS;
  store_element(params, DepthwiseTile(tile), static_cast<int>(at - tile * TILE_ELEMENTS), total);
}
