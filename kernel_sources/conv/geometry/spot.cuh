// The first pixel of a tile of ROWS x COLUMNS pixels. Tiles are counted along a row of tiles, then
// row by row, then image by image.
#pragma once

#include "common/magic.cuh"
#include "target/kernel.cuh"

struct Spot {
  i64 image;
  int p, q;
};

template <int ROWS, int COLUMNS>
device_inline Spot spot_of(u64 tile) {
  const u64 row = DIVIDE(DIV_TILES_Q, tile);
  const u64 image = DIVIDE(DIV_TILES_P, row);
  Spot spot;
  spot.image = static_cast<i64>(image);
  spot.q = static_cast<int>(tile - row * DIV_TILES_Q) * COLUMNS;
  spot.p = static_cast<int>(row - image * DIV_TILES_P) * ROWS;
  return spot;
}
