// The loop of a block that is common to mma and wgmma: it keeps TILE_M whole filters in shared
// memory and computes band after band of pixels. While one band is multiplied, the lines of the
// next are loaded.
#pragma once

#include "conv/few_input_channels/tile.cuh"

static_assert(SLICES == 1 && !PROMOTE_LOCAL);

// A block's bands. Block numbers count tiles of rows fastest, then groups, then shares of the
// bands.
struct BlockBands {
  int first_row;
  u32 group, first, stride, end;

  device_inline explicit BlockBands(const GatherParams& params) {
    const u32 rest = DIVIDE(DIV_TILES_M, block_x());
    first_row = static_cast<int>(block_x() - rest * DIV_TILES_M) * TILE_M;
    first = DIVIDE(DIV_GROUPS, rest);
    group = rest - first * DIV_GROUPS;
    stride = grid_x() / (DIV_TILES_M * DIV_GROUPS);
    end = static_cast<u32>(params.tiles);
  }
};

struct BandLoader : LineLoader<BandLines> {
  device_inline BandLoader(u32 group, const GatherParams& params, byte_t* memory)
      : LineLoader(static_cast<const element_t*>(params.source) +
                       static_cast<i64>(group) * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C),
                   X_PLANES, memory) {}
  // Starts loading band `number`. place: offset of its lines in shared memory, in bytes.
  device_inline void start_band(u32 number, int place) {
    const Band band(number);
    start(band.image, TOP + band.first_p * STRIDE_H,
          (LEFT + band.first_q * STRIDE_W) * PIXEL_ELEMENTS, place);
  }
};

device_inline void fill_table(ReductionWord* table) {
#pragma unroll 1
  for (int i = thread_x(); i < REDUCTION_WORDS; i += THREADS) table[i] = RunWord(i).entry();
}

device_inline const element_t* filters_of(u32 group, const GatherParams& params) {
  return static_cast<const element_t*>(params.w) + W_FIRST[0] +
         static_cast<i64>(group) * W_STRIDE_GROUP;
}

// Waits until all copies of all threads have landed in shared memory.
device_inline void land() {
  async_commit();
  async_wait<0>();
  block_barrier();
}
