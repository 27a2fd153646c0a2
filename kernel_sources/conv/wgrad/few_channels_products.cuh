// The products of a filter gradient with few channels. A warp's product is 16 of the many channels
// by 8 columns, over STEP_PIXELS pixels of a row. In shared memory the many channels are
// [pixel][channel] or, with PLANAR (NCHW), [channel][pixel]. From pixel to pixel, every column's
// elements are the same number of bytes apart.
//
// f32 is multiplied as TF32 or 3xTF32 (SPLIT). 3xTF32 products are accumulated apart and added to
// the sums in f32, because tensor cores round toward zero.
#pragma once

#include "conv/load/whole_rows.cuh"
#include "conv/mma/tf32_parts.cuh"
#include "target/warp_product.cuh"

constexpr int ELEMENT_BYTES = static_cast<int>(sizeof(element_t));
constexpr int STEP_PIXELS = 32 / ELEMENT_BYTES;
// Bytes from a pixel (PLANAR: a channel) of the many channels to the next, padded so that a warp's
// reads fall into different banks.
constexpr int MANY_LINE = (PLANAR ? TILE_Q : BLOCK_MANY) * ELEMENT_BYTES;
constexpr int MANY_PITCH = ELEMENT_BYTES == 2 ? MANY_LINE + 16 : MANY_LINE + (MANY_LINE + 32) % 64;
// Bytes from a channel to the next, and from a pixel to the next.
constexpr int CHANNEL_BYTES = PLANAR ? MANY_PITCH : ELEMENT_BYTES,
              PIXEL_BYTES = PLANAR ? ELEMENT_BYTES : MANY_PITCH;

template <int BYTES>
struct Products;

template <>
struct Products<2> {
  // Pixels of an operand A that a lane addresses, APART apart.
  static constexpr int LANE_PIXELS = 1;
  static constexpr int APART = 16;
  static constexpr int TOGETHER = 1;  // operands A that are read at a time

  struct Left {
    u32 word[4];
  };
  struct Right {
    u32 word[2];
  };

  // The row of four 8x8 matrices whose address a lane gives to ldmatrix: the first 8 channels and
  // pixels, the next 8 channels, then both for the next 8 pixels. A row is a pixel (PLANAR: a
  // channel).
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

  // A lane has four pixels of operand B.
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

  // The warp's channel that is row `half` of operand A number m.
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

// The order of pixels in the reduction and of channels in the rows is free. It is chosen so that a
// lane's elements are contiguous. [pixel][channel]: a lane has pixels t and t + 4 of consecutive
// channels. [channel][pixel]: it has pixels 2t and 2t + 1 of channels g and g + 8.
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
