// The geometry of a convolution whose source has few channels. Its filters fit into shared memory
// and stay there while the block computes band after band of pixels.
//
// The reduction runs over contiguous elements of a line of the source: RUN elements, which are the
// taps of a row (NCHW) or the taps and channels of a row (NHWC). It then runs over rows of taps
// and, in NCHW, channels. A band is BAND_ROWS x BAND_COLUMNS pixels of one image, the columns of
// the tile. Lines of words hold the source elements that these pixels read (line_loader.cuh).
#pragma once

#include "common/magic.cuh"
#include "conv/geometry/first_tap.cuh"
#include "conv/load/line_loader.cuh"
#include "conv/mma/fragment_words.cuh"
#include "conv/store/line_store.cuh"

constexpr int RUN = FILTER_S[0] * PIXEL_ELEMENTS;
constexpr int RUN_WORDS = (RUN + WORD_ELEMENTS - 1) / WORD_ELEMENTS;
constexpr int RUNS = X_PLANES * FILTER_R[0];
constexpr int FRAGMENTS = (RUNS * RUN_WORDS + FRAGMENT_WORDS - 1) / FRAGMENT_WORDS;
constexpr int REDUCTION_WORDS = FRAGMENTS * FRAGMENT_WORDS;
constexpr bool FILLED_UP = RUNS * RUN != REDUCTION_WORDS * WORD_ELEMENTS;
static_assert((DISTANCE_W == 1 || FILTER_S[0] == 1) && BAND_ROWS * BAND_COLUMNS <= TILE_N);

constexpr int PIXEL_STEP = STRIDE_W * PIXEL_ELEMENTS;  // elements from a pixel to the next

struct BandLines {
  static constexpr int ROWS = (BAND_ROWS - 1) * STRIDE_H + (FILTER_R[0] - 1) * DISTANCE_H + 1;
  static constexpr int PHASES = 1;
  static constexpr int WORDS = LINE_WORDS;
  static constexpr int SIZE = SOURCE_W * PIXEL_ELEMENTS;
  static constexpr int STEPS = FRAGMENTS;
};
static_assert(((BAND_COLUMNS - 1) * PIXEL_STEP + X_FRONT) / WORD_ELEMENTS + RUN_WORDS <=
              LINE_WORDS);
static_assert(X_ROW >= LINE_WORDS && X_PLANE >= BandLines::ROWS * X_ROW &&
              (COPIES == 1 || X_COPY >= X_PLANES * X_PLANE));

constexpr int STRIPS = (OUT_Q[0] + BAND_COLUMNS - 1) / BAND_COLUMNS;
constexpr int BANDS = (OUT_P[0] + BAND_ROWS - 1) / BAND_ROWS * STRIPS;  // bands of an image

// The band with a given number, counted from image 0 on. Gives TileStore the places of its pixels.
struct Band {
  u32 image;
  int first_p, first_q;

  device_inline explicit Band(u32 number) {
    image = number / BANDS;
    const int in_image = static_cast<int>(number - image * BANDS);
    first_p = in_image / STRIPS * BAND_ROWS;
    first_q = in_image % STRIPS * BAND_COLUMNS;
  }
  device_inline Pixel at(int n) const {
    const int number = n < BAND_ROWS * BAND_COLUMNS ? n : 0, row = number / BAND_COLUMNS;
    return {0, 0, first_p + row, first_q + number - row * BAND_COLUMNS};
  }
  device_inline bool inside(int n) const {
    const Pixel pixel = at(n);
    return n < BAND_ROWS * BAND_COLUMNS && pixel.p < OUT_P[0] && pixel.q < OUT_Q[0];
  }
  device_inline out_offset_t place(int n) const { return output_offset(at(n)); }
};

// The offset in bytes of pixel n's first word in a band's lines; pixels beyond the band give pixel
// 0's.
device_inline int pixel_place(int n) {
  if (n >= BAND_ROWS * BAND_COLUMNS) return 0;
  const int row = n / BAND_COLUMNS, element = (n - row * BAND_COLUMNS) * PIXEL_STEP;
  return (row * (STRIDE_H * X_ROW) + line_place(element)) * 4;
}

// A word of the reduction: its run, in the order of memory, and its index in the run.
struct RunWord {
  int plane, row, word;
  device_inline explicit RunWord(int number) {
    const int run = number / RUN_WORDS;
    word = number - run * RUN_WORDS;
    plane = run / FILTER_R[0];
    row = run - plane * FILTER_R[0];
  }
  device_inline bool exists() const { return plane < X_PLANES; }
  // The offset that it adds to a pixel's, and the mask of its elements that exist.
  device_inline ReductionWord entry() const {
    if (!exists()) return ReductionWord::of(0, 0);
    return ReductionWord::of((plane * X_PLANE + row * (DISTANCE_H * X_ROW) + word) * 4,
                             RUN - word * WORD_ELEMENTS);
  }
  // The offset of its element i in the filter; -1 if there is none.
  device_inline int filter_offset(int i) const {
    const int element = word * WORD_ELEMENTS + i;
    if (!exists() || element >= RUN) return -1;
    const int column = element / PIXEL_ELEMENTS;
    const int channel = PIXEL_ELEMENTS > 1 ? element - column * PIXEL_ELEMENTS : plane;
    const int r = STEP_H < 0 ? FILTER_R[0] - 1 - row : row;
    const int s = STEP_W < 0 ? FILTER_S[0] - 1 - column : column;
    return channel * static_cast<int>(W_STRIDE_C) + r * static_cast<int>(W_STRIDE_R) +
           s * static_cast<int>(W_STRIDE_S);
  }
};

// Copies the filters of the tile's rows to shared memory, word `number` of row m to place(m,
// number). Padding is zeros.
template <class Place>
device_inline void load_filters(const element_t* at_group, int first_row, const Place& place) {
#pragma unroll 1
  for (int number = thread_x(); number < REDUCTION_WORDS; number += THREADS) {
    const RunWord word(number);
    int offsets[WORD_ELEMENTS];
#pragma unroll
    for (int i = 0; i < WORD_ELEMENTS; ++i) offsets[i] = word.filter_offset(i);
#pragma unroll 8
    for (int m = 0; m < TILE_M; ++m) {
      const element_t* const row = at_group + static_cast<offset_t>(first_row + m) * W_STRIDE_ROW;
      byte_t* const to = place(m, number);
      const auto exists = [&](int i) { return first_row + m < ROWS && offsets[i] >= 0; };
      if constexpr (WORD_ELEMENTS == 1) {
        async_copy<4>(to, row + offsets[0], exists(0));
      } else {
        const u32 first = load_short(row + offsets[0], exists(0));
        const u32 second = load_short(row + offsets[1], exists(1));
        *reinterpret_cast<u32*>(to) = first | second << 16;
      }
    }
  }
}
