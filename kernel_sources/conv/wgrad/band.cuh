// The stages of a planar filter gradient in shared memory: which pixels of dy they hold, and the
// layout of x.
//
// A stage is a band: BAND_ROWS rows of BAND_COLUMNS pixels of one image. Its rows follow each other
// along the reduction, each padded to whole words, and the band is padded to whole fragments. dy is
// [filter][pixel] or, with FILTERS_INNER, [pixel][filter]. x is stored as lines of words
// (line_loader.cuh), with everything that any tap of these pixels reads. Column (c, r, s) of the
// product reads x at pixel (p, q) from one word, whose offset is the sum of the column's offset
// (column_place()) and the pixel's (pixel_entry()). To make this so, columns of x with different
// remainders modulo the stride are in different lines; and 16-bit lines may be kept twice, once for
// taps at even offsets and once for taps at odd ones.
#pragma once

#include "conv/geometry/first_tap.cuh"
#include "conv/load/line_loader.cuh"
#include "conv/mma/fragment_words.cuh"
#include "conv/mma/promoted_sums.cuh"
#include "conv/mma/right_planes.cuh"
#include "conv/wgrad/tile.cuh"

constexpr int ROW_PIXELS = (BAND_COLUMNS + WORD_ELEMENTS - 1) / WORD_ELEMENTS * WORD_ELEMENTS;
constexpr int BAND_PIXELS = BAND_ROWS * ROW_PIXELS;
// In a turn, each slice of a block multiplies one fragment. A stage has at least two turns, so that
// the next stage can be loaded during the first.
constexpr int TURN_PIXELS = SLICES * FRAGMENT_K;
constexpr int STAGE_TURNS = BAND_PIXELS > TURN_PIXELS
                                ? (BAND_PIXELS + TURN_PIXELS - 1) / TURN_PIXELS
                                : 2;
constexpr int STAGE_FRAGMENTS = STAGE_TURNS * SLICES;
constexpr int STAGE_PIXELS = STAGE_FRAGMENTS * FRAGMENT_K;
constexpr int STAGE_WORDS = STAGE_PIXELS / WORD_ELEMENTS;
constexpr int STRIPS = OUT_Q[0] / BAND_COLUMNS;
constexpr int BANDS = (OUT_P[0] + BAND_ROWS - 1) / BAND_ROWS * STRIPS;  // bands of an image
static_assert(STRIPS * BAND_COLUMNS == OUT_Q[0]);
// Whether some words of a stage hold no pixel, or only one of two.
constexpr bool FILLED_UP = BAND_ROWS * BAND_COLUMNS != STAGE_PIXELS || OUT_P[0] % BAND_ROWS != 0;
// The turns of a stage during which the next one is loaded; in the last turn it lands.
constexpr int LOAD_STEPS = STAGE_TURNS - 1;
// Groups of four words in a row; 0 if a row is not whole groups. If it is, all lanes read at the
// same distance from their first word, and need no table.
constexpr int ROW_FOURS =
    BAND_COLUMNS % (4 * WORD_ELEMENTS) == 0 ? BAND_COLUMNS / (4 * WORD_ELEMENTS) : 0;

// dy in shared memory. For mma.sync, a row is a filter or, with FILTERS_INNER, a pixel. For wgmma
// there are planes of 16 bytes: of pixels or, with FILTERS_INNER and 16 bits, of filters.
constexpr bool PLANES_OF_FILTERS = COLUMNS_LEFT && FILTERS_INNER && ELEMENT_BYTES == 2;
constexpr int FILTERS_PLANE = STAGE_PIXELS * 16 + 16;
// Bytes from one filter to the next or, with FILTERS_INNER, from one pixel to the next.
constexpr int GRADIENT_PITCH = COLUMNS_LEFT    ? 16
                               : FILTERS_INNER ? TILE_M * ELEMENT_BYTES + FILTERS_PAD
                                               : fragments_pitch(STAGE_FRAGMENTS);
constexpr int GRADIENT_BYTES = PLANES_OF_FILTERS ? TILE_M / 8 * FILTERS_PLANE
                               : COLUMNS_LEFT
                                   ? STAGE_WORDS / 4 * RIGHT_PLANE
                                   : (FILTERS_INNER ? STAGE_PIXELS : TILE_M) * GRADIENT_PITCH;
device_inline constexpr int gradient_place(int filter, int pixel) {
  if constexpr (PLANES_OF_FILTERS) return filter / 8 * FILTERS_PLANE + pixel * 16 + filter % 8 * 2;
  if constexpr (COLUMNS_LEFT)
    return right_place(filter, pixel / WORD_ELEMENTS) + pixel % WORD_ELEMENTS * ELEMENT_BYTES;
  return FILTERS_INNER ? pixel * GRADIENT_PITCH + filter * ELEMENT_BYTES
                       : filter * GRADIENT_PITCH + pixel * ELEMENT_BYTES;
}
constexpr int X_ROWS = (BAND_ROWS - 1) * STRIDE_H + (FILTER_R[0] - 1) * DISTANCE_H + 1;
constexpr int STAGE_BYTES = GRADIENT_BYTES + X_BYTES;
constexpr int LINE_ELEMENTS = ROW_PIXELS + (FILTER_S[0] - 1) * DISTANCE_W / STRIDE_W;
static_assert(LINE_ELEMENTS + X_FRONT <= LINE_WORDS * WORD_ELEMENTS);
static_assert(X_LINE >= LINE_WORDS && X_ROW >= STRIDE_W * X_LINE && X_PLANE >= X_ROWS * X_ROW &&
              (COPIES == 1 || X_COPY >= X_PLANES * X_PLANE));

struct BandLines {
  static constexpr int ROWS = X_ROWS, PHASES = STRIDE_W, WORDS = LINE_WORDS, SIZE = SOURCE_W;
  static constexpr int STEPS = LOAD_STEPS;
};

// A band, from its number, counted from image 0.
struct Band {
  u32 image;
  int first_p, first_q;
  int words;  // words of pixels that exist

  device_inline explicit Band(u32 number) {
    image = number / BANDS;
    const int in_image = static_cast<int>(number - image * BANDS);
    first_p = in_image / STRIPS * BAND_ROWS;
    first_q = in_image % STRIPS * BAND_COLUMNS;
    const int rows = OUT_P[0] - first_p;
    words = (rows < BAND_ROWS ? rows : BAND_ROWS) * (ROW_PIXELS / WORD_ELEMENTS);
  }
};

// The offset of a column in the stage's x, in bytes: that of the word it reads at the band's first
// pixel.
device_inline int column_place(Tap tap, int first_channel) {
  const int shift = tap_place<0, DISTANCE_W>(0, tap.s), element = shift / STRIDE_W;
  return ((tap.c - first_channel) * X_PLANE + tap_place<DISTANCE_H * X_ROW, 0>(tap.r, 0) +
          shift % STRIDE_W * X_LINE + line_place(element)) *
         WORD_BYTES;
}

// The offset that a word of the band's pixels adds to column_place(), and which of its pixels
// exist.
device_inline ReductionWord pixel_entry(int word) {
  const int pixel = word * WORD_ELEMENTS, row = pixel / ROW_PIXELS;
  const int column = pixel - row * ROW_PIXELS;
  if (row >= BAND_ROWS) return ReductionWord::of(0, 0);
  return ReductionWord::of((row * STRIDE_H * X_ROW + column / WORD_ELEMENTS) * WORD_BYTES,
                           BAND_COLUMNS - column);
}
