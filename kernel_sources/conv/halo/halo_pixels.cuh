// The layout of the source's band in shared memory: [pixel][channel], CHUNK_CHANNELS channels.
#pragma once

#include "conv/halo/halo_tile.cuh"
#include "conv/mma/channel_chunk.cuh"

constexpr int HALO_BYTES = HALO_PIXELS * PITCH;

// The offset of tap (r, s) from a pixel's topmost, leftmost one, in pixels of the halo.
device_inline int tap_pixel(int r, int s) {
  return tap_place<DISTANCE_H * HALO_COLUMNS, DISTANCE_W>(r, s);
}
