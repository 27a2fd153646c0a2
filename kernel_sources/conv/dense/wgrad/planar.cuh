// The copies of a dense filter gradient of channels-first tensors. A step is a 128-byte line of
// pixels of a plane, so the reduction is contiguous, as wgmma reads it. A stage has such a line for
// each filter of dy and each channel of x; TMA fills pixels beyond the plane with zeros.
#pragma once

#include "conv/dense/wgrad/stages.cuh"

// Loads a stage's lines of x or of dy. Called by one thread.
template <bool OF_X>
device_inline void produce_planar(const Params& params, const Share& share, unsigned char* memory,
                                  Barriers& barriers) {
  constexpr int BYTES = (OF_X ? BLOCK_RIGHT : TILE_ROWS) * LINE_BYTES,
                AT = OF_X ? TILE_ROWS * LINE_BYTES : 0;
  const WgradTile tile(share.tile);
  const int first =
      OF_X ? tile.group * CHANNELS + tile.block * LINE_CHANNELS : tile.group * ROWS + tile.row;
  int image = static_cast<int>(share.first / PLANE_STEPS);
  int pixel = static_cast<int>(share.first % PLANE_STEPS) * STEP_PIXELS;
  Ring<STAGES> ring(1);
#pragma unroll 1
  for (u32 step = share.first; step < share.end; ++step) {
    Mbarrier& landed = barriers.landed[ring.stage];
    barriers.free[ring.stage].wait(ring.parity);
    landed.arrive_and_expect(static_cast<u32>(BYTES));
    const int at[3] = {pixel, first, image};
    bulk_load(memory + ring.stage * STAGE_BYTES + AT, OF_X ? params.x : params.dy, landed, at);
    pixel += STEP_PIXELS;
    if (pixel >= PLANE) pixel = 0, ++image;
    ring.advance();
  }
}
