// The first pixel of a tile of ROWS x COLUMNS pixels of one plane of depth. Tiles are counted along
// a row of tiles, then row by row, plane by plane and image by image.
#pragma once

#include "common/magic.cuh"
#include "target/kernel.cuh"

struct VolumeSpot {
  i64 image;
  int o, p, q;
};

template <int ROWS, int COLUMNS>
device_inline VolumeSpot volume_spot_of(u64 tile) {
  const u64 row = DIVIDE(DIV_TILES_Q, tile);
  const u64 plane = DIVIDE(DIV_TILES_P, row);
  const u64 image = DIVIDE(DIV_OUT_O, plane);
  VolumeSpot spot;
  spot.image = static_cast<i64>(image);
  spot.o = static_cast<int>(plane - image * DIV_OUT_O);
  spot.q = static_cast<int>(tile - row * DIV_TILES_Q) * COLUMNS;
  spot.p = static_cast<int>(row - plane * DIV_TILES_P) * ROWS;
  return spot;
}
