// Copies the pixels of an NHWC source that a tile reads to shared memory, in the planes that wgmma
// reads. Channels that are contiguous in global memory go to different planes, 16 bytes each, so
// copies pass through L1 (target/async_copy.cuh).
#pragma once

#include "conv/halo/filter_loader.cuh"
#include "conv/halo/warpgroup_tile.cuh"

struct HaloPlanesLoader {
  const element_t* source;  // at the tile's first image, this block's group, this thread's channels
  const int* offsets;       // offsets of the halo's pixels, in shared memory
  int channel, plane;

  device_inline HaloPlanesLoader(const element_t* at_group, const int* table)
      : source(at_group),
        offsets(table),
        channel(thread_x() % PARTS * VECTOR_ELEMENTS),
        plane(thread_x() % PARTS * PLANE_BYTES) {
    source += channel;
  }

  device_inline void load(int chunk, byte_t* halo) const {
    const bool exists =
        CHANNELS % CHUNK_CHANNELS == 0 || chunk * CHUNK_CHANNELS + channel < CHANNELS;
    const element_t* const from = source + chunk * CHUNK_CHANNELS;
#pragma unroll 2
    for (int pixel = thread_x() / PARTS; pixel < HALO_PIXELS; pixel += THREADS / PARTS) {
      const int offset = offsets[pixel];
      async_copy<16, true>(halo + plane + pixel * 16, from + offset, exists && offset >= 0);
    }
  }
};
