// The geometry of a gather to few output channels: a matrix product whose rows are places, a row of
// pixels p and a column w of the source, and whose columns are pairs of an output channel c and a
// tap s of a filter's row: of these come eights, of rows sixteens. It runs over channels and rows
// of taps alone; an output is the sum, over s, of what the places of its taps hold
// (store.cuh).
//
// A tile is TILE_P rows of pixels of one image by TILE_Q columns of the source. Where the source is
// wider, its strips of columns begin STRIP_STEP apart and overlap by a row of taps, so that every
// output finds all its columns in one strip.
//
// Of a strided data gradient phase 0 spans the others, which take turns from pixel to pixel. A
// pixel stands for ROW_PHASES x COLUMN_PHASES outputs. Along the width these read different taps'
// columns; along the height each has columns of its own, whose filters are zeros in rows of taps
// that it lacks. A line is an output channel in one of these. Where columns are many, LINE_GROUPS
// tiles have TILE_LINES lines each. Rows of taps of a filter in three dimensions are walked plane
// by plane, as if they were more channels.
#pragma once

#include "common/magic.cuh"
#include "conv/geometry/first_tap.cuh"
#include "conv/geometry/live_taps.cuh"
#include "conv/mma/channel_chunk.cuh"
#include "conv/mma/promoted_sums.cuh"
#include "conv/mma/right_planes.cuh"

constexpr int TAPS_R = FILTER_R[0], TAPS_S = TAPS_IN_ROW;
constexpr int ALL_LINES = ROW_PHASES * ROWS;  // (h, c)
constexpr int PAIRS = TILE_LINES * TAPS_S;    // (h, c, s) of a tile
constexpr int HALO_ROWS = (TILE_P - 1) * STRIDE_H + (TAPS_R - 1) * ROW_STEP + 1;
constexpr int HALO_PIXELS = HALO_ROWS * TILE_Q;
static_assert(STRIDE_W == 1 && SLICES == 1 && RUN_M == 1);
static_assert(PAIRS <= TILE_N && TILE_P * TILE_Q <= TILE_M);

// In shared memory, a stage: CHUNK_CHANNELS channels of the halo, [pixel][channel], then of the
// filter, [r][c, s][channel] or, for warpgroups, in planes of 16 bytes of channels. In place of the
// halo, sums on their way out, [c, s][place], those of EXCHANGE_LINES at a time: rows of them 16
// bytes more than a multiple of 128 apart, for a warp writes eight words each of every second one,
// or of f64 half a warp four.
constexpr int HALO_BYTES = HALO_PIXELS * PITCH;
constexpr int SUM_BYTES = static_cast<int>(sizeof(compute_t));
constexpr int EXCHANGE_PAIRS = EXCHANGE_LINES * TAPS_S;
constexpr int EXCHANGE_PITCH = TILE_M + 16 / SUM_BYTES;
constexpr int EXCHANGE_BYTES = EXCHANGE_PAIRS * EXCHANGE_PITCH * SUM_BYTES;
constexpr int FILTER_AT = HALO_BYTES < EXCHANGE_BYTES ? EXCHANGE_BYTES : HALO_BYTES;
static_assert(TILE_M % 32 == 0 && RUN_N == 2);
// Of a row of taps; pairs are read by sixteens, of f64 by eights.
constexpr int TAP_PLANES = CHUNK_STEPS * 2;
constexpr int PAIRS_READ = ELEMENT_BYTES < 8 ? 16 : 8;
constexpr int TAP_BYTES = FILTER_PLANES
                              ? TAP_PLANES * RIGHT_PLANE
                              : (TILE_N + PAIRS_READ - 1) / PAIRS_READ * PAIRS_READ * PITCH;
// From a pair to the next, and from 16 bytes of channels.
constexpr int PAIR_PITCH = FILTER_PLANES ? 16 : PITCH,
              PART_PITCH = FILTER_PLANES ? RIGHT_PLANE : 16;
constexpr int PART_WORDS = 16 / WORD_BYTES;
device_inline constexpr int filter_place(int pair, int word) {
  return pair * PAIR_PITCH + word / PART_WORDS * PART_PITCH + word % PART_WORDS * WORD_BYTES;
}
constexpr int STAGE_BYTES = FILTER_AT + TAPS_R * TAP_BYTES;

// The phase of a pixel's output h, w.
device_inline constexpr int phase_of(int h, int w) {
  return PHASES == 1 ? 0 : 1 + h * COLUMN_PHASES + w;
}

// Columns of outputs that a strip has at most: those whose leftmost tap meets its first STRIP_STEP
// columns; the first strip has those besides that begin before the source, the last one all that
// follow.
constexpr int FIRST_STRIP_COLUMNS = STRIP_STEP - LEFT < OUT_Q[0] ? STRIP_STEP - LEFT : OUT_Q[0];
constexpr int LAST_STRIP_FIRST = (STRIPS - 1) * STRIP_STEP - LEFT;
constexpr int LAST_STRIP_COLUMNS = OUT_Q[0] - LAST_STRIP_FIRST;
device_inline constexpr int larger(int a, int b) { return a < b ? b : a; }
constexpr int STRIP_COLUMNS =
    STRIPS == 1 ? OUT_Q[0]
                : larger(larger(FIRST_STRIP_COLUMNS, STRIP_STEP), larger(LAST_STRIP_COLUMNS, 1));

// Tiles in order: lines, groups, strips, rows, planes, images.
struct FewOutputChannelsTile {
  u32 lines, group, image;
  int o;               // plane of pixels
  int first_p;         // row of pixels
  int first_w;         // column of the source
  int first_q, end_q;  // of the outputs
  TapRange t, r;       // planes and rows of taps that some row of the tile has inside the source

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
    // A filter's only plane, too, may lie in the padding.
    return FILTER_T[0] == 1 && !PADDED_D ? CHUNKS : CHUNKS * (t.end - t.begin);
  }
  // What chunk `number` holds: a plane of taps, and which of the channels.
  device_inline int tap_plane(int number) const {
    return FILTER_T[0] == 1 ? 0 : t.begin + number / CHUNKS;
  }
  device_inline static int channel_chunk(int number) {
    return FILTER_T[0] == 1 ? number : number % CHUNKS;
  }

  // The first output whose leftmost tap meets column w of the source, or one behind it.
  device_inline static int output_column(int w) {
    const int q = w - LEFT;
    return q < 0 ? 0 : q < OUT_Q[0] ? q : OUT_Q[0];
  }
};

// Bytes from the halo on to row m of the product, of the topmost tap; what fills the tile up reads
// some pixel.
device_inline int place_of(int m) {
  const int row = m / TILE_Q;
  return row < TILE_P ? (row * (STRIDE_H * TILE_Q) + m - row * TILE_Q) * PITCH : 0;
}
// From there on to row r of taps.
device_inline int place_of_tap(int r) { return tap_place<ROW_STEP * TILE_Q * PITCH, 0>(r, 0); }
