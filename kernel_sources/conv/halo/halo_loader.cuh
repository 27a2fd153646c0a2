// Copies the band of an NHWC source that a halo tile reads to shared memory, 16 bytes a copy:
// CHUNK_CHANNELS channels at a time, once for all taps.
#pragma once

#include "conv/halo/halo_pixels.cuh"
#include "conv/load/channel_vectors.cuh"
#include "target/async_copy.cuh"

struct HaloLoader {
  const element_t* source;  // at the tile's first image, this block's group, this thread's channels
  const int* offsets;       // offsets of the halo's pixels, in shared memory
  int channel, first;       // this thread's channel and pixel

  device_inline HaloLoader(const element_t* at_group, const int* table)
      : source(at_group),
        offsets(table),
        channel(thread_x() % PARTS * VECTOR_ELEMENTS),
        first(kept(static_cast<int>(thread_x()) / PARTS)) {
    source += channel;
  }

  device_inline void load(int chunk, byte_t* halo) const {
    const bool exists =
        CHANNELS % CHUNK_CHANNELS == 0 || chunk * CHUNK_CHANNELS + channel < CHANNELS;
    const element_t* const from = source + chunk * CHUNK_CHANNELS;
    byte_t* const to = halo + thread_x() % PARTS * 16;
#pragma unroll 4
    for (int i = first; i < (HALO_PIXELS + 7) / 8 * 8; i += THREADS / PARTS) {
      const int pixel = spread_row(i);
      if (HALO_PIXELS % 8 != 0 && pixel >= HALO_PIXELS) continue;
      const int offset = offsets[pixel];
      async_copy<16>(to + pixel * PITCH, from + offset, exists && offset >= 0);
    }
  }
};
