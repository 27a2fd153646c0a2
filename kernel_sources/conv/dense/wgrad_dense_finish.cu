// The second step of a dense filter gradient whose groups of blocks left their sums in the
// workspace: adds them up in the order of the groups, and stores dw. A block is one quad of a tile,
// a thread of it each.
#include "conv/dense/wgrad_lost.cuh"
#include "target/step.cuh"

KILN_BEGINS_STEP;

KILN_KERNEL(wgrad_dense_finish, ADDERS, 1, DenseWgradParams, params) {
  begin_step();
  const u32 tile = block_x() / QUADS;
  const int quad = static_cast<int>(block_x() % QUADS), adder = static_cast<int>(thread_x());
  Quad total = {};
#pragma unroll 32  // few threads wait for memory here
  for (u32 group = 0; group < params.groups; ++group) {
    const Quad part = partial_quads(params, group, tile)[quad * ADDERS + adder];
#pragma unroll
    for (int i = 0; i < 4; ++i) total.sum[i] += part.sum[i];
  }
  const bool stored = store_quad(params, QuadPlace(WgradTile(tile), quad, adder), total);
  if constexpr (CHECKED) add_up_lost(params, WgradTile(tile), quad, adder, !stored);
}
