// How the source's band lies in shared memory: [pixel][channel], of CHUNK_CHANNELS channels at a
// time.
#pragma once

#include "conv/halo/halo_tile.cuh"
#include "conv/mma/channel_chunk.cuh"

constexpr int HALO_BYTES = HALO_PIXELS * PITCH;

// Where tap (r, s) lies from a pixel's topmost, leftmost one, in pixels of the halo.
device_inline int tap_pixel(int r, int s) {
  return tap_place<ROW_STEP * HALO_COLUMNS, COLUMN_STEP>(r, s);
}
