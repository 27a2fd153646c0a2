// The output of a dense gather: a tile's sums, slab by slab, to their pixels.
#pragma once

#include "conv/dense/store.cuh"
#include "conv/dense/tile.cuh"
#include "target/sum_registers.cuh"

using Sums = SumRegisters<float, LEFT, BLOCK_RIGHT / 8, false, PROMOTE_LOCAL>;

// ROW_LINE rows from `row` on of the pixels from `pixel` on.
struct OutputPlace {
  const Params& params;
  int phase, row;
  u32 pixel;

  // By one thread.
  device_inline void store(const unsigned char* slab) const {
    const TensorMap& map = params.maps[phase * 3 + 2];
    if constexpr (OUT_IN_LINE) {
      const int at[2] = {row, static_cast<int>(pixel)};
      bulk_store(map, slab, at);
    } else {
      const PixelPlace place(pixel, phase);
      const BoxAt at(row, place.q, place.p, place.o, place.n);
      bulk_store_im2col(map, slab, at.at);
    }
  }
  device_inline void load(unsigned char* slab, Mbarrier& landed) const {
    const TensorMap& map = params.maps[RESIDUAL ? PHASES * 3 : phase * 3 + 2];
    if constexpr (RESIDUAL ? Z_IN_LINE : OUT_IN_LINE) {
      const int at[2] = {row, static_cast<int>(pixel)};
      bulk_load(slab, map, landed, at);
    } else {
      const PixelPlace place(pixel, phase);
      const BoxAt at(row, place.q, place.p, place.o, place.n);
      bulk_load_im2col(slab, map, landed, at.at, TapAt(0, 0, 0).at);
    }
  }
};

// Left operand L's, with pixels on the left: a line of rows at a time.
template <int L, int FIRST>
device_inline void store_pixels(Store& store, const Sums& sums, const OutputPlace& place,
                                bool any) {
  store.store<L, FIRST, FIRST + ROW_LINE / 8>(sums, place, any);
  if constexpr (FIRST + ROW_LINE / 8 < BLOCK_RIGHT / 8) {
    OutputPlace next = place;
    next.row += ROW_LINE;
    store_pixels<L, FIRST + ROW_LINE / 8>(store, sums, next, any);
  }
}

template <int L>
device_inline void store_tile(Store& store, const Sums& sums, const Params& params,
                              const Tile& tile, u32 group) {
  const int left = static_cast<int>(group) * GROUP_ROWS + L * 64;
  const bool any = tile.steps() > 0;
  if constexpr (PIXELS_LEFT) {
    const OutputPlace place{params, tile.phase, tile.first_row,
                            tile.first_pixel + static_cast<u32>(left)};
    store_pixels<L, 0>(store, sums, place, any);
  } else {
    const OutputPlace place{params, tile.phase, tile.first_row + left, tile.first_pixel};
    store.store<L, 0, BLOCK_RIGHT / 8>(sums, place, any);
  }
  if constexpr (L + 1 < LEFT) store_tile<L + 1>(store, sums, params, tile, group);
}
