// Brings a band's stage to shared memory, spread over the fragments of the stage before: dy in
// copies of COPY_BYTES, x as lines of words.
#pragma once

#include "conv/wgrad_band.cuh"

// A thread takes the same pixels of each filter.
struct GradientLoader {
  static constexpr int COPY_PIXELS = COPY_BYTES == 2 ? 2 : COPY_BYTES / ELEMENT_BYTES;
  using Loader = RowLoader<STAGE_PIXELS / COPY_PIXELS, COPY_BYTES, GRADIENT_PITCH, LOAD_STEPS>;
  Loader loader;
  const element_t* dy;  // what the loader begins at in image 0

  // The thread's first pixel in the band.
  device_inline static int pixel() { return Loader::position() * COPY_PIXELS; }
  device_inline static int row() { return pixel() / ROW_PIXELS; }
  device_inline static int column() { return pixel() % ROW_PIXELS; }

  device_inline GradientLoader(const element_t* group, int first_filter, byte_t* shared)
      : loader(group + (static_cast<offset_t>(first_filter) * OUT_STRIDE_ROW +
                        static_cast<offset_t>(row()) * OUT_STRIDE_P +
                        static_cast<offset_t>(column()) * OUT_STRIDE_Q),
               pixel() * ELEMENT_BYTES, OUT_STRIDE_ROW, OUT_STRIDE_Q, ROWS - first_filter, shared),
        dy(loader.operand) {}

  device_inline void start(const Band& band, int stage) {
    loader.operand = dy + static_cast<i64>(band.image) * OUT_STRIDE_N;
    const bool exists = row() < BAND_ROWS && pixel() < band.words * WORD_ELEMENTS;
    loader.start(static_cast<offset_t>(band.first_p) * OUT_STRIDE_P +
                     static_cast<offset_t>(band.first_q) * OUT_STRIDE_Q,
                 stage, exists ? BAND_COLUMNS - column() : 0);
  }
};

struct StageLoader {
  GradientLoader gradients;
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
  // All steps at once.
  device_inline void load_all() { gradients.loader.load_all(), lines.finish(); }
  // A step's share of dy, called for each row of products, for many copies at once would have to
  // wait for each other; and after them the step's end, with its share of x.
  device_inline void load_among(int row) { gradients.loader.load<PRODUCTS_M>(row); }
  device_inline void end_step() {
    gradients.loader.advance();
    if (lines.pending()) lines.step();
  }
  device_inline void load_step() {
    gradients.loader.load<1>(0);
    end_step();
  }
};
