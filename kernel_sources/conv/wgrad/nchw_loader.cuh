// Loads a band to a stage in shared memory, spread over the fragments of the stage before: dy in
// copies of COPY_BYTES, x as lines of words (line_loader.cuh).
#pragma once

#include "conv/wgrad/band.cuh"

// Loads dy whose pixels are contiguous, BYTES at a time. A thread takes the same pixels of every
// filter.
template <int BYTES>
struct FilterRows {
  static constexpr int COPY_PIXELS = BYTES == 2 ? 2 : BYTES / ELEMENT_BYTES;
  using Loader = RowLoader<STAGE_PIXELS / COPY_PIXELS, BYTES, GRADIENT_PITCH, LOAD_STEPS>;
  Loader loader;
  const element_t* dy;  // the loader's first element in image 0

  // The thread's first pixel in the band.
  device_inline static int pixel() { return Loader::position() * COPY_PIXELS; }
  device_inline static int row() { return pixel() / ROW_PIXELS; }
  device_inline static int column() { return pixel() % ROW_PIXELS; }

  device_inline FilterRows(const element_t* group, int first_filter, byte_t* shared)
      : loader(group + (static_cast<offset_t>(first_filter) * OUT_STRIDE_ROW +
                        static_cast<offset_t>(row()) * OUT_STRIDE_P +
                        static_cast<offset_t>(column()) * OUT_STRIDE_Q),
               gradient_place(0, pixel()), OUT_STRIDE_ROW, OUT_STRIDE_Q, ROWS - first_filter,
               shared),
        dy(loader.operand) {}

  device_inline void start(const Band& band, int stage) {
    loader.operand = dy + static_cast<i64>(band.image) * OUT_STRIDE_N;
    const bool exists = row() < BAND_ROWS && pixel() < band.words * WORD_ELEMENTS;
    loader.start(static_cast<offset_t>(band.first_p) * OUT_STRIDE_P +
                     static_cast<offset_t>(band.first_q) * OUT_STRIDE_Q,
                 stage, exists ? BAND_COLUMNS - column() : 0);
  }
  template <int SHARES>
  device_inline void load(int share) {
    loader.template load<SHARES>(share);
  }
  device_inline void advance() { loader.advance(); }
  device_inline void load_all() { loader.load_all(); }
};

// Loads dy whose filters are contiguous. A thread takes the same filters of every PIXELS_A_TURN-th
// pixel.
template <int BYTES>
struct PixelRows {
  static constexpr int COPIES = TILE_M * ELEMENT_BYTES / BYTES;  // copies of a pixel
  static constexpr int PIXELS_A_TURN = THREADS / COPIES;
  static constexpr int BATCH = turns_of(turns_of(STAGE_PIXELS, PIXELS_A_TURN), LOAD_STEPS);
  // Whether pixels are GRADIENT_PITCH bytes apart; else gradient_place() computes each one's
  // offset.
  static constexpr bool EVEN = !COLUMNS_LEFT || PLANES_OF_FILTERS;
  static_assert(PIXELS_A_TURN > 0 && (!PLANES_OF_FILTERS || BYTES == 16));

  const element_t* dy;     // at the thread's filters, image 0
  const element_t* first;  // the same, at the band's first pixel
  byte_t* memory;
  bool filters_exist;
  int pixel;   // the next pixel of the band to load
  int pixels;  // pixels of the band that exist
  int to;      // offset of that pixel in shared memory; without EVEN, of the stage

  device_inline static int filter() { return thread_x() % COPIES * (BYTES / ELEMENT_BYTES); }
  device_inline static int first_pixel() { return thread_x() / COPIES; }

  device_inline PixelRows(const element_t* group, int first_filter, byte_t* shared)
      : dy(group + first_filter + filter()),
        first(dy),
        memory(shared),
        filters_exist(ROWS % TILE_M == 0 || first_filter + filter() < ROWS),
        pixel(STAGE_PIXELS),
        pixels(0),
        to(0) {}

  device_inline void start(const Band& band, int stage) {
    first = dy + static_cast<i64>(band.image) * OUT_STRIDE_N +
            (static_cast<offset_t>(band.first_p) * OUT_STRIDE_P +
             static_cast<offset_t>(band.first_q) * OUT_STRIDE_Q);
    // Threads beyond the last whole turn take no pixels.
    pixel = first_pixel() < PIXELS_A_TURN ? first_pixel() : STAGE_PIXELS;
    pixels = filters_exist ? band.words * WORD_ELEMENTS : 0;
    to = stage + (EVEN ? gradient_place(filter(), first_pixel()) : 0);
  }
  template <int SHARES>
  device_inline void load(int share) {
#pragma unroll
    for (int i = share * BATCH / SHARES; i < (share + 1) * BATCH / SHARES; ++i) {
      const int number = pixel + i * PIXELS_A_TURN, row = number / ROW_PIXELS;
      const int column = number - row * ROW_PIXELS;
      const bool exists = number < pixels && (ROW_PIXELS == BAND_COLUMNS || column < BAND_COLUMNS);
      async_copy_if<BYTES>(
          number < STAGE_PIXELS,
          memory + to +
              (EVEN ? i * (PIXELS_A_TURN * GRADIENT_PITCH) : gradient_place(filter(), number)),
          first + (static_cast<offset_t>(row) * OUT_STRIDE_P +
                   static_cast<offset_t>(column) * OUT_STRIDE_Q),
          exists);
    }
  }
  device_inline void advance() {
    pixel += BATCH * PIXELS_A_TURN;
    if (EVEN) to += BATCH * PIXELS_A_TURN * GRADIENT_PITCH;
  }
  device_inline void load_all() {
#pragma unroll 1
    for (int i = 0; i < LOAD_STEPS; ++i) load<1>(0), advance();
  }
};

template <bool INNER>
struct GradientRows {
  using Loader = FilterRows<COPY_BYTES>;
};
template <>
struct GradientRows<true> {
  using Loader = PixelRows<COPY_BYTES>;
};

struct StageLoader {
  GradientRows<FILTERS_INNER>::Loader gradients;
  LineLoader<BandLines> lines;

  device_inline StageLoader(const WgradTile& tile, const WgradParams& params, int first_channel,
                            byte_t* memory)
      : gradients(tile.dy(params), tile.first_filter, memory),
        lines(tile.x(params) + static_cast<offset_t>(first_channel) * SOURCE_STRIDE_C,
              CHANNELS - first_channel, memory) {}

  device_inline void start(const Band& band, int stage) {
    gradients.start(band, stage);
    lines.start(band.image, TOP + band.first_p * STRIDE_H, LEFT + band.first_q * STRIDE_W,
                stage + GRADIENT_BYTES);
  }
  // Loads a whole stage at once.
  device_inline void load_all() { gradients.load_all(), lines.finish(); }
  // Loads a part of a step's share of dy. It is called for each row of products, because many
  // copies at once would wait for each other. end_step() follows, which loads the step's share of
  // x.
  device_inline void load_among(int row) { gradients.load<PRODUCTS_M>(row); }
  device_inline void end_step() {
    gradients.advance();
    if (lines.pending()) lines.step();
  }
  device_inline void load_step() {
    gradients.load<1>(0);
    end_step();
  }
};
