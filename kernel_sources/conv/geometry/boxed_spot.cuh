// The first pixel of a tile of ROWS x COLUMNS pixels, for tiles that 32 bits count. They are
// counted along a row of tiles, then row by row, then image by image.
#pragma once

#include "target/kernel.cuh"

template <int ROWS, int COLUMNS>
struct BoxedSpot {
  i64 image;
  int p, q;
  device_inline explicit BoxedSpot(u32 tile) {
    const u32 row = tile / TILES_Q, up = row / TILES_P;
    image = up;
    p = static_cast<int>(row - up * TILES_P) * ROWS;
    q = static_cast<int>(tile - row * TILES_Q) * COLUMNS;
  }
};
