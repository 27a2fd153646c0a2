// The filter in registers, for pixels whose channels came in classes (tile.cuh). Step k of a
// product is channel CLASSES (8 H + k % 8) + 2 U + k / 8 there, for which the tensor cores would
// have to read every CLASSES-th channel of the filter's line; a thread finds those of its own steps
// side by side, 2 CLASSES of them for each H.
#pragma once

#include "conv/dense/tile.cuh"

class ClassFilter {
  u32 words_[4][4];  // of each product, as mma_16x8x16 has them

  // CLASSES pairs of channels.
  struct alignas(CLASSES == 2 ? 8 : 16) Run {
    u32 pair[CLASSES];
  };
  // Those of the lane's steps, of a line whose places of 16 bytes are permuted.
  device_inline static Run read(const unsigned char* line, int half, int row) {
    const int at = half * (16 * CLASSES) + static_cast<int>(thread_x() % 4) * (4 * CLASSES);
    Run run;
    if constexpr (CLASSES == 8) {
      struct alignas(16) Place {
        u32 pair[4];
      };
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Place place = *reinterpret_cast<const Place*>(line + ((at / 16 + i) ^ row % 8) * 16);
#pragma unroll
        for (int j = 0; j < 4; ++j) run.pair[i * 4 + j] = place.pair[j];
      }
    } else {
      run = *reinterpret_cast<const Run*>(line + (at / 16 ^ row % 8) * 16 + at % 16);
    }
    return run;
  }

 public:
  // Of 64 rows of 64 channels, as a load with a swizzle has left them.
  device_inline void load(const unsigned char* rows) {
    const int row = static_cast<int>(thread_x() / 32 % 4 * 16 + thread_x() % 32 / 4);
#pragma unroll
    for (int h = 0; h < 8 / CLASSES; ++h) {
      const Run runs[2] = {read(rows + row * LINE_BYTES, h, row),
                           read(rows + (row + 8) * LINE_BYTES, h, row + 8)};
#pragma unroll
      for (int u = 0; u < CLASSES / 2; ++u)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const u32 even = runs[half].pair[u], odd = runs[half].pair[u + CLASSES / 2];
          words_[u * (8 / CLASSES) + h][half] = (even & 0xffffu) | odd << 16;
          words_[u * (8 / CLASSES) + h][2 + half] = even >> 16 | (odd & 0xffff0000u);
        }
    }
  }
  device_inline const u32 (&words(int product) const)[4] { return words_[product]; }
};
