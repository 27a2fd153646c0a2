// The output of a dense gather: a tile's sums, slab by slab, to their pixels.
#pragma once

#include "conv/dense/store.cuh"
#include "conv/dense/tile.cuh"
#include "target/sum_registers.cuh"

using Sums = SumRegisters<float, LEFT, BLOCK_RIGHT / 8, false, PROMOTE_LOCAL>;

// ROW_LINE rows from `row` on of the pixels from `pixel` on; PLANAR, 64 rows or BLOCK_RIGHT of
// SLAB_LINE pixels of an image.
struct OutputPlace {
  const Params& params;
  int phase, row;
  u32 pixel;
  int image;

  // `rows` and `pixels` into a tile.
  device_inline OutputPlace(const Params& of, const Tile& tile, int rows, int pixels)
      : params(of),
        phase(tile.phase),
        row(tile.first_row + rows),
        pixel(tile.first_pixel + static_cast<u32>(IMAGES > 1 ? 0 : pixels)),
        image(tile.image + (IMAGES > 1 ? pixels / IMAGE_PIXELS : 0)) {}

  device_inline void next_block() { row += ROW_LINE; }
  // By one thread.
  device_inline void store(const unsigned char* slab) const {
    const TensorMap& map = params.maps[output_map(phase, 0)];
    if constexpr (PLANAR) {
#pragma unroll
      for (int i = 0; i < CLASSES; ++i) {
        const int at[3] = {static_cast<int>(pixel) + i * OUT_STRIDE_ROW, row / CLASSES, image};
        bulk_store(params.maps[output_map(0, i)], slab + i * (SLAB_BLOCK_BYTES / CLASSES), at);
      }
    } else if constexpr (OUT_IN_LINE) {
      const int at[2] = {row, static_cast<int>(pixel)};
      bulk_store(map, slab, at);
    } else {
      const PixelPlace place(pixel, phase);
      const BoxAt at(row, place.q, place.p, place.o, place.n);
      bulk_store_im2col(map, slab, at.at);
    }
  }
  device_inline void load(unsigned char* slab, Mbarrier& landed) const {
    const TensorMap& map = params.maps[residual_map(phase, 0)];
    if constexpr (PLANAR) {
#pragma unroll
      for (int i = 0; i < CLASSES; ++i) {
        const int at[3] = {static_cast<int>(pixel) + i * Z_STRIDE_ROW, row / CLASSES, image};
        bulk_load(slab + i * (SLAB_BLOCK_BYTES / CLASSES), params.maps[residual_map(0, i)], landed,
                  at);
      }
    } else if constexpr (RESIDUAL ? Z_IN_LINE : OUT_IN_LINE) {
      const int at[2] = {row, static_cast<int>(pixel)};
      bulk_load(slab, map, landed, at);
    } else {
      const PixelPlace place(pixel, phase);
      const BoxAt at(row, place.q, place.p, place.o, place.n);
      bulk_load_im2col(slab, map, landed, at.at, TapAt(0, 0, 0).at);
    }
  }
};

// Left operand L's, whose rows are lines of the slab: as many columns at a time as these hold.
template <int L, int FIRST>
device_inline void store_lines(Store& store, const Sums& sums, const Params& params,
                               const Tile& tile, int left, bool any) {
  constexpr int END = FIRST + SLAB_LINE / 8;
  const OutputPlace place(params, tile, PIXELS_LEFT ? FIRST * 8 : left,
                          PIXELS_LEFT ? left : FIRST * 8);
  store.store<L, FIRST, END>(sums, place, any);
  if constexpr (END < BLOCK_RIGHT / 8) store_lines<L, END>(store, sums, params, tile, left, any);
}

template <int L>
device_inline void store_tile(Store& store, const Sums& sums, const Params& params,
                              const Tile& tile, u32 group) {
  const int left = static_cast<int>(group) * GROUP_ROWS + L * 64;
  const bool any = tile.steps() > 0;
  if constexpr (LINES_LEFT) {
    store_lines<L, 0>(store, sums, params, tile, left, any);
  } else {
    const OutputPlace place(params, tile, PIXELS_LEFT ? 0 : left, PIXELS_LEFT ? left : 0);
    store.store<L, 0, BLOCK_RIGHT / 8>(sums, place, any);
  }
  if constexpr (L + 1 < LEFT) store_tile<L + 1>(store, sums, params, tile, group);
}
