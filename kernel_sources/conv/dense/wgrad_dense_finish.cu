// The second step of a dense filter gradient with groups of blocks, which left their sums in the
// workspace. It adds them up in the order of the groups and stores dw. A block has one quad of a
// tile: a thread for each thread of the first step that had sums.
#include "conv/dense/wgrad_lost.cuh"
#include "target/step.cuh"

KILN_BEGINS_STEP;

KILN_KERNEL(wgrad_dense_finish, ADDERS, 1, DenseWgradParams, params) {
  begin_step();
  const u32 tile = block_x() / QUADS;
  const int quad = static_cast<int>(block_x() % QUADS), adder = static_cast<int>(thread_x());
  Quad total = {};
#pragma unroll 32  // many loads in flight, because the step has few threads
  for (u32 group = 0; group < params.groups; ++group) {
    const Quad part = partial_quads(params, group, tile)[quad * ADDERS + adder];
#pragma unroll
    for (int i = 0; i < 4; ++i) total.sum[i] += part.sum[i];
  }
  const bool stored = store_quad(params, QuadPlace(WgradTile(tile), quad, adder), total);
  if constexpr (CHECKED) add_up_lost(params, WgradTile(tile), quad, adder, !stored);
}
