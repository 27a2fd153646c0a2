// The pixels of dy that a stage of a planar filter gradient holds, and how x lies beside them.
//
// A stage is a band of BAND_ROWS rows of BAND_COLUMNS pixels of one image, one row behind the other
// along the reduction (rows of whole words, the last fragment filled up): dy as [filter][pixel] or,
// with FILTERS_INNER, as [pixel][filter], and of x, as lines of words (line_loader.cuh), what all
// taps of these pixels meet. Column (c, r,
// s) of the product at pixel (p, q) is a word of it, at the column's place plus the pixel's. Lines
// are kept apart by their column's remainder of the stride; of 16 bits there may be two copies, for
// taps in even and in odd places.
#pragma once

#include "conv/geometry/first_tap.cuh"
#include "conv/load/line_loader.cuh"
#include "conv/mma/fragment_words.cuh"
#include "conv/mma/promoted_sums.cuh"
#include "conv/mma/right_planes.cuh"
#include "conv/wgrad/tile.cuh"

constexpr int ROW_PIXELS = (BAND_COLUMNS + WORD_ELEMENTS - 1) / WORD_ELEMENTS * WORD_ELEMENTS;
constexpr int BAND_PIXELS = BAND_ROWS * ROW_PIXELS;
// In each, all slices of a block multiply a fragment. At least two, so that the next stage can be
// loaded beside the first.
constexpr int TURN_PIXELS = SLICES * FRAGMENT_K;
constexpr int STAGE_TURNS = BAND_PIXELS > TURN_PIXELS
                                ? (BAND_PIXELS + TURN_PIXELS - 1) / TURN_PIXELS
                                : 2;
constexpr int STAGE_FRAGMENTS = STAGE_TURNS * SLICES;
constexpr int STAGE_PIXELS = STAGE_FRAGMENTS * FRAGMENT_K;
constexpr int STAGE_WORDS = STAGE_PIXELS / WORD_ELEMENTS;
constexpr int STRIPS = OUT_Q[0] / BAND_COLUMNS;
constexpr int BANDS = (OUT_P[0] + BAND_ROWS - 1) / BAND_ROWS * STRIPS;  // of an image
static_assert(STRIPS * BAND_COLUMNS == OUT_Q[0]);
// Some words of a stage are of no pixel, or of one only.
constexpr bool FILLED_UP = BAND_ROWS * BAND_COLUMNS != STAGE_PIXELS || OUT_P[0] % BAND_ROWS != 0;
// Of a stage, by which the next one is on its way: in the last one it lands.
constexpr int LOAD_STEPS = STAGE_TURNS - 1;
// Fours of words in a row, if they are whole: then all lanes read the same way from their first
// word.
constexpr int ROW_FOURS =
    BAND_COLUMNS % (4 * WORD_ELEMENTS) == 0 ? BAND_COLUMNS / (4 * WORD_ELEMENTS) : 0;

// dy in shared memory: rows of a filter or a pixel or, for products of warpgroups, planes of 16
// bytes, of pixels or (16 bits that lie so) of filters.
constexpr bool PLANES_OF_FILTERS = COLUMNS_LEFT && FILTERS_INNER && ELEMENT_BYTES == 2;
constexpr int FILTERS_PLANE = STAGE_PIXELS * 16 + 16;
// Bytes from a filter to the next or, of filters that lie side by side, from a pixel.
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
constexpr int X_ROWS = (BAND_ROWS - 1) * STRIDE_H + (FILTER_R[0] - 1) * ROW_STEP + 1;
constexpr int STAGE_BYTES = GRADIENT_BYTES + X_BYTES;
constexpr int LINE_ELEMENTS = ROW_PIXELS + (FILTER_S[0] - 1) * COLUMN_STEP / STRIDE_W;
static_assert(LINE_ELEMENTS + X_FRONT <= LINE_WORDS * WORD_ELEMENTS);
static_assert(X_LINE >= LINE_WORDS && X_ROW >= STRIDE_W * X_LINE && X_PLANE >= X_ROWS * X_ROW &&
              (COPIES == 1 || X_COPY >= X_PLANES * X_PLANE));

struct BandLines {
  static constexpr int ROWS = X_ROWS, PHASES = STRIDE_W, WORDS = LINE_WORDS, SIZE = SOURCE_W;
  static constexpr int STEPS = LOAD_STEPS;
};

// A band, by its number from image 0 on.
struct Band {
  u32 image;
  int first_p, first_q;
  int words;  // of its pixels that exist

  device_inline explicit Band(u32 number) {
    image = number / BANDS;
    const int in_image = static_cast<int>(number - image * BANDS);
    first_p = in_image / STRIPS * BAND_ROWS;
    first_q = in_image % STRIPS * BAND_COLUMNS;
    const int rows = OUT_P[0] - first_p;
    words = (rows < BAND_ROWS ? rows : BAND_ROWS) * (ROW_PIXELS / WORD_ELEMENTS);
  }
};

// Bytes from the stage's x on to the word that a column of the product is at the band's first
// pixel.
device_inline int column_place(Tap tap, int first_channel) {
  const int shift = tap_place<0, COLUMN_STEP>(0, tap.s), element = shift / STRIDE_W;
  return ((tap.c - first_channel) * X_PLANE + tap_place<ROW_STEP * X_ROW, 0>(tap.r, 0) +
          shift % STRIDE_W * X_LINE + line_place(element)) *
         WORD_BYTES;
}

// What a word of the band's pixels adds to that.
device_inline ReductionWord pixel_entry(int word) {
  const int pixel = word * WORD_ELEMENTS, row = pixel / ROW_PIXELS;
  const int column = pixel - row * ROW_PIXELS;
  if (row >= BAND_ROWS) return ReductionWord::of(0, 0);
  return ReductionWord::of((row * STRIDE_H * X_ROW + column / WORD_ELEMENTS) * WORD_BYTES,
                           BAND_COLUMNS - column);
}
