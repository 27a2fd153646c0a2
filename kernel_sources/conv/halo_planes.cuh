// Brings the pixels of the source that a tile meets to shared memory as wgmma reads them: planes of
// 16 bytes of channels, a plane's pixels one behind the other. So any 8 pixels side by side are a
// matrix for it, from whichever pixel on. What lies side by side in memory is 16 bytes here and 16
// bytes there: it comes through L1 (target/async_copy.cuh).
#pragma once

#include "conv/filter_loader.cuh"
#include "conv/pixel_tile.cuh"
#include "target/wgmma.cuh"

constexpr int PLANE_BYTES = HALO_PLANE * 16;
static_assert(HALO_PLANE >= HALO_PIXELS);
constexpr int HALO_BYTES = PARTS * PLANE_BYTES;

struct HaloPlanesLoader {
  const element_t* source;  // at the tile's first image, this block's group, this thread's channels
  const int* offsets;       // of the halo's pixels, in shared memory
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
#pragma unroll 4
    for (int pixel = thread_x() / PARTS; pixel < HALO_PIXELS; pixel += THREADS / PARTS) {
      const int offset = offsets[pixel];
      async_copy<16, true>(halo + plane + pixel * 16, from + offset, exists && offset >= 0);
    }
  }
};

// All pixels of a tile, 32 bytes of a chunk's channels: the first ones of the halo at `halos`.
device_inline SharedMatrix pixel_matrix(const byte_t* halos) {
  return SharedMatrix(halos, PLANE_BYTES, NEXT_PIXELS * 16);
}
