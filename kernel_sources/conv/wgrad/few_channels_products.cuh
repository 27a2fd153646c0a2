// The products of a filter gradient with few channels, each by a warp: 16 of the many channels by 8
// columns, over STEP_PIXELS pixels of a row. In shared memory the many channels are
// [pixel][channel] or, of channels-first tensors (PLANAR), [channel][pixel]. Every column's
// elements lie so many bytes apart from pixel to pixel.
//
// Of f32 a product is one of TF32, or three (SPLIT). These come together apart from the sums, which
// f32 adds up: tensor cores round toward zero.
#pragma once

#include "conv/load/whole_rows.cuh"
#include "conv/mma/tf32_parts.cuh"
#include "target/warp_product.cuh"

constexpr int ELEMENT_BYTES = static_cast<int>(sizeof(element_t));
constexpr int STEP_PIXELS = 32 / ELEMENT_BYTES;
// From a pixel of the many channels, or a channel, to the next: such that what a warp reads at a
// time lies in different banks.
constexpr int MANY_LINE = (PLANAR ? TILE_Q : BLOCK_MANY) * ELEMENT_BYTES;
constexpr int MANY_PITCH = ELEMENT_BYTES == 2 ? MANY_LINE + 16 : MANY_LINE + (MANY_LINE + 32) % 64;
// In them, from a channel to the next, and from a pixel.
constexpr int CHANNEL_BYTES = PLANAR ? MANY_PITCH : ELEMENT_BYTES,
              PIXEL_BYTES = PLANAR ? ELEMENT_BYTES : MANY_PITCH;

template <int BYTES>
struct Products;

template <>
struct Products<2> {
  static constexpr int LANE_PIXELS = 1;  // that a lane addresses of a left operand, APART apart
  static constexpr int APART = 16;
  static constexpr int TOGETHER = 1;  // left operands that are read at a time

  struct Left {
    u32 word[4];
  };
  struct Right {
    u32 word[2];
  };

  // A lane's row of four matrices: of the first 8 channels and pixels, of the next 8 channels, then
  // 8 pixels on. A row is a pixel or (PLANAR) a channel.
  device_inline static int left_pixel(int lane) { return lane / 16 * 8 + (PLANAR ? 0 : lane % 8); }
  device_inline static int left_channel(int lane) {
    return lane / 8 % 2 * 8 + (PLANAR ? lane % 8 : 0);
  }
  device_inline static void load(Left* left, const unsigned char* const (&pixels)[1]) {
    if constexpr (PLANAR)
      load_matrices(left[0].word, pixels[0]);
    else
      load_matrices_transposed(left[0].word, pixels[0]);
  }

  // Of a right operand a lane has four pixels.
  device_inline static int right_pixel(int lane) { return 2 * (lane % 4); }
  device_inline static u32 right_mask(int half, int lane, int pixels) {
    const int pixel = right_pixel(lane) + 8 * half;
    return (pixel < pixels ? 0xffffu : 0) | (pixel + 1 < pixels ? 0xffff0000u : 0);
  }
  template <int COLUMN_BYTES>
  device_inline static Right load_right(const unsigned char* at, const u32 (&mask)[2]) {
    Right right;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      right.word[half] = pack_shorts(short_at(at + 8 * half * COLUMN_BYTES),
                                     short_at(at + (8 * half + 1) * COLUMN_BYTES)) &
                         mask[half];
    return right;
  }

  // Of the warp's, that row `half` of left operand m is.
  device_inline static int channel(int m, int half, int lane) {
    return m * 16 + half * 8 + lane / 4;
  }
  template <int COUNT, class Sums>
  device_inline static void add(Sums& sums, int first, int j, const Left (&left)[COUNT],
                                const Right& right) {
#pragma unroll
    for (int m = 0; m < COUNT; ++m)
      add_product<element_t>(sums[first + m][j], left[m].word, right.word);
  }
};

// Which pixel is which step of a product is free, and which channel is which row: what a lane has
// lies side by side. [pixel][channel]: pixels t and t + 4, of channels in a run. [channel][pixel]:
// pixels 2t and 2t + 1 of channels g and g + 8.
template <>
struct Products<4> {
  static constexpr int LANE_PIXELS = PLANAR ? 1 : 2, APART = 4;
  static constexpr int TOGETHER = !PLANAR && PRODUCTS_M % 2 == 0 ? 2 : 1;
  static constexpr int RUN = 2 * TOGETHER;
  struct alignas(4 * RUN) Run {
    float element[RUN];
  };

  struct Left {
    float hi[4], lo[4];
  };
  struct Right {
    float hi[2], lo[2];
  };
  template <int COUNT>
  device_inline static void split_tf32(float (&hi)[COUNT], float (&lo)[COUNT]) {
    if constexpr (SPLIT) {
#pragma unroll
      for (int i = 0; i < COUNT; ++i) {
        const HiLo parts = split(hi[i]);
        hi[i] = parts.hi, lo[i] = parts.lo;
      }
    }
  }

  device_inline static int left_pixel(int lane) { return right_pixel(lane); }
  device_inline static int left_channel(int lane) { return lane / 4 * (PLANAR ? 1 : RUN); }
  device_inline static void load(Left* left, const unsigned char* const (&pixels)[LANE_PIXELS]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned char* const from =
          PLANAR ? pixels[0] + half * (8 * MANY_PITCH) : pixels[half % LANE_PIXELS];
      const Run run = *reinterpret_cast<const Run*>(from);
#pragma unroll
      for (int i = 0; i < RUN; ++i)
        left[i / 2 % TOGETHER].hi[PLANAR ? 2 * i + half : 2 * half + i % 2] = run.element[i];
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) split_tf32(left[i].hi, left[i].lo);
  }

  device_inline static int right_pixel(int lane) { return lane % 4 * (PLANAR ? 2 : 1); }
  static constexpr int RIGHT_APART = PLANAR ? 1 : 4;
  device_inline static u32 right_mask(int half, int lane, int pixels) {
    return right_pixel(lane) + RIGHT_APART * half < pixels ? ~0u : 0;
  }
  template <int COLUMN_BYTES>
  device_inline static Right load_right(const unsigned char* at, const u32 (&mask)[2]) {
    Right right;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      right.hi[half] = float_of(
          *reinterpret_cast<const u32*>(at + RIGHT_APART * half * COLUMN_BYTES) & mask[half]);
    split_tf32(right.hi, right.lo);
    return right;
  }

  device_inline static int channel(int m, int half, int lane) {
    if constexpr (PLANAR) return m * 16 + half * 8 + lane / 4;
    return m / TOGETHER * (8 * RUN) + lane / 4 * RUN + m % TOGETHER * 2 + half;
  }
  template <int COUNT, class Sums>
  device_inline static void add(Sums& sums, int first, int j, const Left (&left)[COUNT],
                                const Right& right) {
    if constexpr (SPLIT) {
      float part[COUNT][4];
#pragma unroll
      for (int m = 0; m < COUNT; ++m) set_product(part[m], left[m].lo, right.hi);
#pragma unroll
      for (int m = 0; m < COUNT; ++m) add_product(part[m], left[m].hi, right.lo);
#pragma unroll
      for (int m = 0; m < COUNT; ++m) add_product(part[m], left[m].hi, right.hi);
#pragma unroll
      for (int m = 0; m < COUNT; ++m)
#pragma unroll
        for (int c = 0; c < 4; ++c) sums[first + m][j][c] += part[m][c];
    } else {
#pragma unroll
      for (int m = 0; m < COUNT; ++m) add_product(sums[first + m][j], left[m].hi, right.hi);
    }
  }
};

using StepProducts = Products<ELEMENT_BYTES>;
