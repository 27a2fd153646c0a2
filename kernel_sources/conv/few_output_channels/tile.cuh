// The geometry of a gather to few output channels. It is a matrix product: a row is a row of pixels
// p and a column w of the source; a column is a pair of an output channel c and a tap s of a
// filter's row. Rows come in multiples of 16, columns in multiples of 8. The reduction runs only
// over channels and rows of taps; an output is the sum over s of the products at the source columns
// of its taps (store.cuh).
//
// A tile is TILE_P rows of pixels of one image by TILE_Q columns of the source. A wider source is
// divided into strips of columns, which begin STRIP_STEP apart and overlap by the reach of a row of
// taps, so that every output has all its source columns in one strip.
//
// In a strided data gradient, phase 0 covers the taps of all other phases, and a pixel stands for
// ROW_PHASES x COLUMN_PHASES outputs. Outputs of different phases along the width add up the
// columns of different taps. Phases along the height have separate columns, with zeros in rows of
// taps that a phase lacks. A line is an output channel of one phase along the height. If there are
// many columns, LINE_GROUPS tiles have TILE_LINES lines each. The taps of a three-dimensional
// filter are walked plane by plane, like further channels.
#pragma once

#include "common/magic.cuh"
#include "conv/geometry/first_tap.cuh"
#include "conv/geometry/live_taps.cuh"
#include "conv/mma/channel_chunk.cuh"
#include "conv/mma/promoted_sums.cuh"
#include "conv/mma/right_planes.cuh"

constexpr int TAPS_R = FILTER_R[0], TAPS_S = TAPS_IN_ROW;
constexpr int ALL_LINES = ROW_PHASES * ROWS;  // (h, c)
constexpr int PAIRS = TILE_LINES * TAPS_S;    // (h, c, s) in a tile
constexpr int HALO_ROWS = (TILE_P - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1;
constexpr int HALO_PIXELS = HALO_ROWS * TILE_Q;
static_assert(STRIDE_W == 1 && SLICES == 1 && RUN_M == 1);
static_assert(PAIRS <= TILE_N && TILE_P * TILE_Q <= TILE_M);

// A stage in shared memory has CHUNK_CHANNELS channels of the halo, [pixel][channel], then of the
// filter, [r][c, s][channel] or, for wgmma, in planes of 16 bytes of channels. Sums are exchanged
// in place of the halo, as [c, s][row of the product], EXCHANGE_LINES lines at a time. Their rows
// are 16 bytes more than a multiple of 128 apart: a warp writes eight words of every second row
// (f64: half a warp, four words), and these fall into different banks.
constexpr int HALO_BYTES = HALO_PIXELS * PITCH;
constexpr int SUM_BYTES = static_cast<int>(sizeof(compute_t));
constexpr int EXCHANGE_PAIRS = EXCHANGE_LINES * TAPS_S;
constexpr int EXCHANGE_PITCH = TILE_M + 16 / SUM_BYTES;
constexpr int EXCHANGE_BYTES = EXCHANGE_PAIRS * EXCHANGE_PITCH * SUM_BYTES;
constexpr int FILTER_AT = HALO_BYTES < EXCHANGE_BYTES ? EXCHANGE_BYTES : HALO_BYTES;
static_assert(TILE_M % 32 == 0 && RUN_N == 2);
// Sizes for a row of taps; pairs are read 16 at a time (f64: 8).
constexpr int TAP_PLANES = CHUNK_STEPS * 2;
constexpr int PAIRS_READ = ELEMENT_BYTES < 8 ? 16 : 8;
constexpr int TAP_BYTES = FILTER_PLANES
                              ? TAP_PLANES * RIGHT_PLANE
                              : (TILE_N + PAIRS_READ - 1) / PAIRS_READ * PAIRS_READ * PITCH;
// Bytes from one pair to the next, and from 16 bytes of channels to the next.
constexpr int PAIR_PITCH = FILTER_PLANES ? 16 : PITCH,
              PART_PITCH = FILTER_PLANES ? RIGHT_PLANE : 16;
constexpr int PART_WORDS = 16 / WORD_BYTES;
device_inline constexpr int filter_place(int pair, int word) {
  return pair * PAIR_PITCH + word / PART_WORDS * PART_PITCH + word % PART_WORDS * WORD_BYTES;
}
constexpr int STAGE_BYTES = FILTER_AT + TAPS_R * TAP_BYTES;

// The phase of a pixel's output (h, w).
device_inline constexpr int phase_of(int h, int w) {
  return PHASES == 1 ? 0 : 1 + h * COLUMN_PHASES + w;
}

// The most columns of outputs of a strip: those whose leftmost tap is in its first STRIP_STEP
// columns. The first strip also has the outputs that begin before the source, the last one all that
// follow.
constexpr int FIRST_STRIP_COLUMNS = STRIP_STEP - LEFT < OUT_Q[0] ? STRIP_STEP - LEFT : OUT_Q[0];
constexpr int LAST_STRIP_FIRST = (STRIPS - 1) * STRIP_STEP - LEFT;
constexpr int LAST_STRIP_COLUMNS = OUT_Q[0] - LAST_STRIP_FIRST;
device_inline constexpr int larger(int a, int b) { return a < b ? b : a; }
constexpr int STRIP_COLUMNS =
    STRIPS == 1 ? OUT_Q[0]
                : larger(larger(FIRST_STRIP_COLUMNS, STRIP_STEP), larger(LAST_STRIP_COLUMNS, 1));

// A tile. Numbers count groups of lines fastest, then groups, strips, rows, planes and images.
struct FewOutputChannelsTile {
  u32 lines, group, image;
  int o;               // plane of pixels
  int first_p;         // first row of pixels
  int first_w;         // first column of the source
  int first_q, end_q;  // range of columns of outputs
  TapRange t, r;  // planes and rows of taps that lie inside the source for some row of the tile

  device_inline explicit FewOutputChannelsTile(u32 number) {
    const u32 whole = DIVIDE(DIV_LINE_GROUPS, number);
    lines = number - whole * DIV_LINE_GROUPS;
    const u32 rest = DIVIDE(DIV_GROUPS, whole);
    group = whole - rest * DIV_GROUPS;
    const u32 next = DIVIDE(DIV_STRIPS, rest);
    const int strip = static_cast<int>(rest - next * DIV_STRIPS);
    const u32 plane = DIVIDE(DIV_TILES_P, next);
    first_p = static_cast<int>(next - plane * DIV_TILES_P) * TILE_P;
    image = DIVIDE(DIV_OUT_O, plane);
    o = static_cast<int>(plane - image * DIV_OUT_O);
    first_w = strip * STRIP_STEP;
    first_q = strip == 0 ? 0 : output_column(first_w);
    end_q = strip == STRIPS - 1 ? OUT_Q[0] : output_column(first_w + STRIP_STEP);
    const int last_p = (first_p + TILE_P < OUT_P[0] ? first_p + TILE_P : OUT_P[0]) - 1;
    r = live_taps<PADDED_H>(first_p, last_p, STRIDE_H, ORIGIN_H[0], STEP_H, SOURCE_H, TAPS_R);
    t = live_taps<PADDED_D>(o, o, STRIDE_D, ORIGIN_D[0], STEP_D, SOURCE_D, FILTER_T[0]);
  }

  device_inline int chunks() const {
    // Even the only plane of a filter may lie in the padding.
    return FILTER_T[0] == 1 && !PADDED_D ? CHUNKS : CHUNKS * (t.end - t.begin);
  }
  // Chunk `number` has a plane of taps, and some of the channels.
  device_inline int tap_plane(int number) const {
    return FILTER_T[0] == 1 ? 0 : t.begin + number / CHUNKS;
  }
  device_inline static int channel_chunk(int number) {
    return FILTER_T[0] == 1 ? number : number % CHUNKS;
  }

  // The first output whose leftmost tap is at column w of the source or later.
  device_inline static int output_column(int w) {
    const int q = w - LEFT;
    return q < 0 ? 0 : q < OUT_Q[0] ? q : OUT_Q[0];
  }
};

// The offset in bytes in the halo of row m of the product, for the topmost tap. Rows that fill up
// the tile read some pixel of it.
device_inline int place_of(int m) {
  const int row = m / TILE_Q;
  return row < TILE_P ? (row * (STRIDE_H * TILE_Q) + m - row * TILE_Q) * PITCH : 0;
}
// The offset from there to row r of taps.
device_inline int place_of_tap(int r) { return tap_place<DISTANCE_H * TILE_Q * PITCH, 0>(r, 0); }
