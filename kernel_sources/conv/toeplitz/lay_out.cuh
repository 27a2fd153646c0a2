// Rearranges boxes of 8 channels, which TMA loads pixel by pixel, channel by channel.
#pragma once

#include "common/compute_type.cuh"
#include "target/vector_access.cuh"

constexpr int OCTET = 8;  // channels of a pixel in a box, 16 bytes

// Returns a word in which the sign bit of a half is set if that half of `pair` is not finite:
// adding 1 to the exponent then overflows into the sign.
device_inline u32 not_finite(u32 pair) {
  constexpr u32 EXPONENT = is_bf16(element_t{}) ? 0x7f807f80u : 0x7c007c00u;
  constexpr u32 ONE = is_bf16(element_t{}) ? 0x00800080u : 0x04000400u;
  return (pair & EXPONENT) + ONE & 0x80008000u;
}

// Rearranges the first `rows` rows of a box, which are WIDTH pixels each: calls put(channel, row,
// column, pair of elements) for every two neighbouring columns of each channel. Returns
// not_finite() of all elements, combined by OR.
template <int WIDTH, int THREADS, class Put>
device_inline u32 lay_out(const u32* box, int rows, const Put& put) {
  constexpr int PAIRS = WIDTH / 2;  // pairs of columns in a row
  struct alignas(16) Pixel {
    u32 pair[OCTET / 2];
  };
  u32 seen = 0;
#pragma unroll 2
  for (int i = thread_x(); i < rows * PAIRS; i += THREADS) {
    const int row = i / PAIRS, column = (i - row * PAIRS) * 2;
    const Pixel* const from = reinterpret_cast<const Pixel*>(box) + row * WIDTH + column;
    const Pixel left = from[0], right = from[1];
#pragma unroll
    for (int pair = 0; pair < OCTET / 2; ++pair) {
      const u32 a = left.pair[pair], b = right.pair[pair];
      seen |= not_finite(a) | not_finite(b);
      put(2 * pair, row, column, pack_shorts(a, b));
      put(2 * pair + 1, row, column, (a >> 16) | (b & 0xffff0000u));
    }
  }
  return seen;
}
