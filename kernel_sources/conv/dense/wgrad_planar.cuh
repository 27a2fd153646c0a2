// What the blocks of a dense filter gradient of channels-first tensors read: 64 pixels of a plane a
// step, which lie side by side as the reduction should. A stage is a line of them for each filter
// of dy and for each channel of x, class by class (tile.cuh); what lies behind a plane is zeros.
#pragma once

#include "conv/dense/wgrad_stages.cuh"

// Copy i of a stage: of dy, then of x, a class each.
struct PlanarCopy {
  bool of_x;
  int of_class, bytes, at;  // in the stage
  device_inline constexpr explicit PlanarCopy(int i)
      : of_x(i >= CLASSES),
        of_class(i % CLASSES),
        bytes((of_x ? BLOCK_RIGHT : TILE_ROWS) / CLASSES * LINE_BYTES),
        at((of_x ? TILE_ROWS * LINE_BYTES : 0) + of_class * bytes) {}
};

template <int ASKER>
device_inline constexpr u32 asked_bytes() {
  int bytes = 0;
  for (int i = ASKER; i < 2 * CLASSES; i += ASKERS) bytes += PlanarCopy(i).bytes;
  return static_cast<u32>(bytes);
}

// By one thread, of a stage's copies every ASKERS-th from ASKER on.
template <int ASKER>
device_inline void produce_planar(const Params& params, const Share& share, unsigned char* memory,
                                  Barriers& barriers) {
  const WgradTile tile(share.tile);
  const int filter = (tile.group * ROWS + tile.row) / CLASSES,
            channel = (tile.group * CHANNELS + tile.block * LINE_CHANNELS) / CLASSES;
  int image = static_cast<int>(share.first / PLANE_STEPS);
  int pixel = static_cast<int>(share.first % PLANE_STEPS) * STEP_PIXELS;
  Ring<STAGES> ring(1);
#pragma unroll 1
  for (u32 step = share.first; step < share.end; ++step) {
    Mbarrier& landed = barriers.landed[ring.stage];
    barriers.free[ring.stage].wait(ring.parity);
    landed.arrive_and_expect(asked_bytes<ASKER>());
#pragma unroll
    for (int i = ASKER; i < 2 * CLASSES; i += ASKERS) {
      const PlanarCopy copy(i);
      const int first = copy.of_class * (copy.of_x ? X_STRIDE_CHANNEL : DY_STRIDE_CHANNEL);
      const int at[3] = {first + pixel, copy.of_x ? channel : filter, image};
      bulk_load(memory + ring.stage * STAGE_BYTES + copy.at,
                copy.of_x ? params.x[copy.of_class] : params.dy[copy.of_class], landed, at);
    }
    pixel += STEP_PIXELS;
    if (pixel >= PLANE) pixel = 0, ++image;
    ring.advance();
  }
}
