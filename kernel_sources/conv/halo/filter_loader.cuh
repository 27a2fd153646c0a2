// Copies the filter to shared memory in its own layout: one tap at a time, CHUNK_CHANNELS channels
// of it, 16 bytes a copy.
#pragma once

#include "conv/geometry/tap_walk.cuh"
#include "conv/halo/filter_reader.cuh"
#include "conv/load/channel_vectors.cuh"
#include "target/async_copy.cuh"

// Vectors in a line of the tile in shared memory, which is a row of the filter or, with
// FILTER_ROWS_INNER, a channel; and the number of lines.
constexpr int FILTER_PARTS = FILTER_ROWS_INNER ? TILE_M / VECTOR_ELEMENTS : PARTS;
constexpr int FILTER_LINES = FILTER_ROWS_INNER ? CHUNK_CHANNELS : TILE_M;

// The layout of lines that FilterReader expects: one after the other.
struct FilterInLines {
  static constexpr int LINE = FILTER_PITCH, PART = 16;  // bytes from one to the next
  static constexpr int BYTES = FILTER_LINES * FILTER_PITCH;
  device_inline static int spread(int line) { return FILTER_ROWS_INNER ? line : spread_row(line); }
};

// IN_L1: see async_copy().
template <bool IN_L1, class Layout = FilterInLines>
struct FilterLoader {
  // Threads beyond whole lines are idle.
  static constexpr int ROW_PARTS = FILTER_PARTS, TILE_ROWS = FILTER_LINES;
  static constexpr int ROWS_A_TURN = THREADS / ROW_PARTS;
  static constexpr int TURNS = (TILE_ROWS + ROWS_A_TURN - 1) / ROWS_A_TURN;
  static_assert(TILE_M % VECTOR_ELEMENTS == 0);
  // The rows of later turns are the first turn's plus a constant, also where row orders permute
  // bits.
  static_assert(FILTER_ROWS_INNER || (ROWS_A_TURN & (ROWS_A_TURN - 1)) == 0);

  const element_t* w;  // at this thread's first vector
  int to;              // offset of that vector in the tile, in bytes
  int row, part;       // row and part of that vector
  int channels, rows;  // how many the filter has from there on, for chunk 0

  device_inline FilterLoader(const element_t* at_group, int first_row)
      : row(thread_x() / ROW_PARTS), part(thread_x() % ROW_PARTS) {
    row = Layout::spread(row);
    to = kept(row * Layout::LINE + part * Layout::PART);
    const int m = FILTER_ROWS_INNER ? part * VECTOR_ELEMENTS : row_kept_at(row);
    const int c = FILTER_ROWS_INNER ? row : part * VECTOR_ELEMENTS;
    w = at_group + kept(static_cast<offset_t>(first_row + m) * W_STRIDE_ROW +
                        static_cast<offset_t>(c) * W_STRIDE_C);
    channels = CHANNELS - c;
    rows = ROWS - first_row - m;
  }

  device_inline void load(const Step& step, byte_t* tile) const {
    const element_t* const from =
        w +
        (static_cast<offset_t>(step.chunk * CHUNK_CHANNELS) * W_STRIDE_C +
         static_cast<offset_t>(step.r) * W_STRIDE_R + static_cast<offset_t>(step.s) * W_STRIDE_S);
    const int left = channels - step.chunk * CHUNK_CHANNELS;
    if (THREADS % ROW_PARTS != 0 && row >= ROWS_A_TURN) return;
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
      const int on = turn * ROWS_A_TURN;
      if (TILE_ROWS % ROWS_A_TURN != 0 && row + on >= TILE_ROWS) break;
      const int m = FILTER_ROWS_INNER ? 0 : row_kept_at(on), c = FILTER_ROWS_INNER ? on : 0;
      async_copy<16, IN_L1>(
          tile + (to + on * Layout::LINE),
          from + (static_cast<offset_t>(m) * W_STRIDE_ROW + static_cast<offset_t>(c) * W_STRIDE_C),
          (CHANNELS % CHUNK_CHANNELS == 0 || c < left) && (ROWS % TILE_M == 0 || m < rows));
    }
  }
};
