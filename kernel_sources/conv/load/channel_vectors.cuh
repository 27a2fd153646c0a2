// A chunk of channels that lie side by side, as copies of 16 bytes bring it.
#pragma once

#include "conv/geometry/tile_sums.cuh"
#include "conv/mma/channel_chunk.cuh"

constexpr int VECTOR_ELEMENTS = 16 / static_cast<int>(sizeof(element_t));
constexpr int PARTS = CHUNK_BYTES / 16;  // of a pixel or a row
static_assert(THREADS % PARTS == 0 && CHANNELS % VECTOR_ELEMENTS == 0);

// Rows of 64 bytes lie 5 times 16 bytes apart: eight lanes that write two of them write to
// different banks if the rows are 4 apart. So of every 8 rows, 0, 4, 1, 5, 2, 6, 3, 7 follow each
// other.
device_inline int spread_row(int row) {
  if constexpr (PARTS != 4) return row;
  return (row & ~7) | (row & 1) << 2 | (row >> 1 & 3);
}
