// How a chunk of contiguous channels is copied, 16 bytes at a time.
#pragma once

#include "conv/geometry/tile_sums.cuh"
#include "conv/mma/channel_chunk.cuh"

constexpr int VECTOR_ELEMENTS = 16 / static_cast<int>(sizeof(element_t));
constexpr int PARTS = CHUNK_BYTES / 16;  // copies of a pixel or of a row
static_assert(THREADS % PARTS == 0 && CHANNELS % VECTOR_ELEMENTS == 0);

// Rows of 64 bytes have a pitch of 80 bytes. Eight lanes that write two rows hit different banks if
// these rows are 4 apart. So every 8 rows are taken in the order 0, 4, 1, 5, 2, 6, 3, 7.
device_inline int spread_row(int row) {
  if constexpr (PARTS != 4) return row;
  return (row & ~7) | (row & 1) << 2 | (row >> 1 & 3);
}
