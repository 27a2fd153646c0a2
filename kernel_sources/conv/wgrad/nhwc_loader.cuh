// Loads the operands of a filter gradient of channels-last tensors into shared memory, STAGE_PIXELS
// pixels of the reduction at a time, in copies of 16 bytes: dy as [pixel][filters], and x as
// [pixel][columns], where 16 bytes are channels of one tap. A thread always copies the same filters
// and columns.
#pragma once

#include "conv/geometry/pixel_bounds.cuh"
#include "conv/mma/fragments.cuh"
#include "conv/wgrad/tile.cuh"
#include "target/async_copy.cuh"

constexpr int VECTOR_ELEMENTS = 16 / static_cast<int>(sizeof(element_t));
constexpr int STAGE_PIXELS = STAGE_FRAGMENTS * FRAGMENT_K;
// Bytes of a pixel.
constexpr int PITCH_M = TILE_M * static_cast<int>(sizeof(element_t)) + PITCH_PAD;
constexpr int PITCH_N = TILE_N * static_cast<int>(sizeof(element_t)) + PITCH_PAD;
constexpr int STAGE_M = STAGE_PIXELS * PITCH_M;
constexpr int STAGE = STAGE_M + STAGE_PIXELS * PITCH_N;
static_assert(CHANNELS % VECTOR_ELEMENTS == 0 && ROWS % VECTOR_ELEMENTS == 0);

device_inline constexpr int power_of_two_from(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

// The distribution of a stage's copies over the threads, with OUTER elements in a pixel. A pixel
// has a power of two of threads; those beyond its vectors are idle.
template <int OUTER>
struct StageWalk {
  static constexpr int VECTORS = OUTER / VECTOR_ELEMENTS;
  static constexpr int SPREAD = power_of_two_from(VECTORS);
  static constexpr int STEP = THREADS / SPREAD;  // pixels in a turn
  static constexpr int TURNS = (STAGE_PIXELS + STEP - 1) / STEP;
  static_assert(THREADS % SPREAD == 0);

  device_inline static int first_pixel() { return thread_x() / SPREAD; }
  device_inline static int element() { return thread_x() % SPREAD * VECTOR_ELEMENTS; }
  // Whether the thread takes part in a turn.
  device_inline static bool walks(int turn) {
    return (VECTORS == SPREAD || element() < OUTER) &&
           (TURNS * STEP == STAGE_PIXELS || first_pixel() + turn * STEP < STAGE_PIXELS);
  }
};

struct ColumnLoader {
  using Walk = StageWalk<TILE_N>;
  // Taps of neighboring pixels read the same elements of x, which L1 keeps for the next stage.
  static constexpr bool SEVERAL_TAPS = CHANNELS < TILE_N;
  const element_t* x;  // address of this thread's columns in image 0, minus bias() elements
  Tap tap;
  u32 end;  // end of the part's pixels; 0 beyond the last column, so that zeros are loaded

  device_inline ColumnLoader(const element_t* group, const TapBox& taps, int first_column,
                             u32 end_pixel) {
    const int column = first_column + Walk::element();
    const bool exists = REDUCTION % TILE_N == 0 || column < REDUCTION;
    tap = taps.decode(exists ? column : 0);
    x = opaque(group - bias(0) + tap_offset(tap));
    end = exists ? end_pixel : 0;
  }

  // Loads the stage whose pixels begin at `first`. Pixels from `end` on are zeros.
  device_inline void load(u32 first, byte_t* stage) const {
    byte_t* const to = stage + Walk::first_pixel() * PITCH_N +
                       Walk::element() * static_cast<int>(sizeof(element_t));
#pragma unroll
    for (int turn = 0; turn < Walk::TURNS; ++turn) {
      if (!Walk::walks(turn)) break;
      const u32 k = first + Walk::first_pixel() + turn * Walk::STEP;
      const Pixel pixel = pixel_at(k);
      bool valid = k < end;
      if constexpr (PADDED_D) valid = valid && in_depth(first_d(pixel, 0), tap.t);
      if constexpr (PADDED_H) valid = valid && in_height(first_h(pixel, 0), tap.r);
      if constexpr (PADDED_W) valid = valid && in_width(first_w(pixel, 0), tap.s);
      async_copy<16, SEVERAL_TAPS>(
          to + turn * Walk::STEP * PITCH_N,
          x + static_cast<i64>(pixel.image) * SOURCE_STRIDE_N + pixel_offset(in_first_image(pixel)),
          valid);
    }
  }
};

struct GradientLoader {
  using Walk = StageWalk<TILE_M>;
  const element_t* dy;  // address of this thread's filters
  u32 end;

  device_inline GradientLoader(const element_t* group, int first_filter, u32 end_pixel) {
    const int filter = first_filter + Walk::element();
    const bool exists = ROWS % TILE_M == 0 || filter < ROWS;
    dy = opaque(group + (exists ? filter : 0));
    end = exists ? end_pixel : 0;
  }

  device_inline void load(u32 first, byte_t* stage) const {
    byte_t* const to = stage + Walk::first_pixel() * PITCH_M +
                       Walk::element() * static_cast<int>(sizeof(element_t));
#pragma unroll
    for (int turn = 0; turn < Walk::TURNS; ++turn) {
      if (!Walk::walks(turn)) break;
      const u32 k = first + Walk::first_pixel() + turn * Walk::STEP;
      const element_t* from = dy;
      if constexpr (GRADIENT_STEP > 0) {
        from += static_cast<i64>(k) * GRADIENT_STEP;
      } else {
        const Pixel pixel = pixel_at(k);
        from += static_cast<i64>(pixel.image) * OUT_STRIDE_N + output_offset(in_first_image(pixel));
      }
      async_copy<16>(to + turn * Walk::STEP * PITCH_M, from, k < end);
    }
  }
};
