// Channels-first pixels of f32 as operand A. wgmma reads f32 from shared memory only where the
// reduction, here the channels, is contiguous; so each lane reads its own words into registers.
#pragma once

#include "conv/dense/tile.cuh"

// Included after tile.cuh, which it uses.
#include "conv/dense/operand_rows.cuh"

// A lane's words of operand A over 8 channels, for each operand A of the warpgroup.
struct PixelWords {
  u32 left[LEFT][4];
};

// Reads a lane's words from a stage.
class PixelReader {
  int place_[4];

 public:
  device_inline explicit PixelReader(u32 group) {
    const int lane = static_cast<int>(thread_x() % 32),
              warp = static_cast<int>(thread_x() / 32 % 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int pixel = static_cast<int>(group) * GROUP_ROWS +
                        row_of_operand(warp, i % 2 * 8 + lane / 4),
                channel = lane % 4 + i / 2 * 4;
      place_[i] = pixel / PIXEL_LINE * PIXEL_LINE_BLOCK + channel * PIXEL_LINE_BYTES +
                  (pixel % PIXEL_LINE * 4 ^ channel * 16);
    }
  }
  // The words of channels 8 * eight to 8 * eight + 7 of the stage.
  device_inline void read(PixelWords& words, const unsigned char* stage, int eight) const {
#pragma unroll
    for (int l = 0; l < LEFT; ++l)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        words.left[l][i] = *reinterpret_cast<const u32*>(stage + place_[i] +
                                                         l * (64 / PIXEL_LINE * PIXEL_LINE_BLOCK) +
                                                         eight * (8 * PIXEL_LINE_BYTES));
  }
};
