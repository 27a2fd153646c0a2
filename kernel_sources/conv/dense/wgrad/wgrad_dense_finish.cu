// The second step of a dense filter gradient with groups of blocks, which left their sums in the
// workspace: it adds them up in a fixed order and stores dw. A lane has one quad of a thread of the
// first step. The warps of a block divide the groups, so that many loads are in flight however few
// tiles there are; the sums of their parts are added in order.
#include "conv/dense/wgrad/lost.cuh"
#include "target/shared_memory.cuh"
#include "target/step.cuh"

constexpr int WARPS = FINISH_WARPS;  // of a block, at most

KILN_BEGINS_STEP;

KILN_KERNEL(wgrad_dense_finish, 32 * WARPS, 1, DenseWgradFinishParams, params) {
  Quad* const sums = shared_array<Quad, 32 * WARPS>(0);
  begin_step();
  const u32 warp = thread_x() / 32, lane = thread_x() % 32;
  const u32 part = warp % params.parts;
  const u32 slice = block_x() * params.slices + warp / params.parts;
  constexpr u32 SLICES = ADDERS / 32;  // of a quad
  const int adder = static_cast<int>(slice % SLICES * 32 + lane);
  const int quad = static_cast<int>(slice / SLICES % QUADS);
  const u32 tile = slice / (SLICES * QUADS);
  const u32 groups = params.common.groups;
  const u32 end = (part + 1) * groups / params.parts;
  const Quad* const from = partial_quads(params.common, 0, tile) + quad * ADDERS + adder;
  const u64 apart = static_cast<u64>(TILES) * (QUADS * ADDERS);
  // Loads in flight. With 8, the checked kernel would spill registers.
  constexpr u32 TOGETHER = CHECKED ? 4 : 8;
  Quad total = {};
#pragma unroll 1
  for (u32 group = part * groups / params.parts; group < end; group += TOGETHER) {
    Quad some[TOGETHER];
#pragma unroll
    for (u32 i = 0; i < TOGETHER; ++i)
      if (group + i < end) some[i] = from[(group + i) * apart];
#pragma unroll
    for (u32 i = 0; i < TOGETHER; ++i) {
      if (group + i >= end) break;
#pragma unroll
      for (int j = 0; j < 4; ++j) total.sum[j] += some[i].sum[j];
    }
  }
  if (part > 0) sums[thread_x()] = total;
  block_barrier();
  if (part > 0) return;
#pragma unroll 4
  for (u32 other = 1; other < params.parts; ++other) {
    const Quad some = sums[thread_x() + other * 32];
#pragma unroll
    for (int i = 0; i < 4; ++i) total.sum[i] += some.sum[i];
  }
  const bool stored = store_quad(params.common, QuadPlace(WgradTile(tile), quad, adder), total);
  if constexpr (CHECKED) add_up_lost(params.common, WgradTile(tile), quad, adder, !stored);
}
