// Stores a tile's accumulators one by one, for outputs in which none of a thread's elements are
// contiguous and aligned: neighbouring threads store neighbouring columns. If each thread stored
// its own columns, each sector of the output would be touched several times.
#pragma once

#include "conv/geometry/tile_sums.cuh"
#include "conv/store/gather_output.cuh"

// Recomputes the pieces that scale_back() reported as lost. Called when the registers of all sums
// are free. A Store has these pieces as bits of `lost`, and gives the row and the pixel of element
// i of a line, and whether the output has it.
template <class Store>
device_inline void add_up_lost(const Store& store) {
  if (!CHECKED || store.lost == 0) return;
#pragma unroll 1
  for (int i = 0; i < LINES * LINE; ++i) {
    const int index = i / LINE, element = i % LINE;
    if ((store.lost >> (i / PIECE) & 1) == 0 || !store.exists(index, element)) continue;
    const int row = store.row(index, element), n = store.pixel(index, element);
    const Pixel pixel = store.pixels.at(n);
    const out_offset_t at = output_offset(pixel) + static_cast<out_offset_t>(row) * OUT_STRIDE_ROW;
    store.epilogue.store_one(at, residual_place(store.pixels, row, n, at),
                             store.sums.add_up(pixel, row), store.epilogue.bias_of(row));
  }
}

// See TileStore (line_store.cuh) for Pixels and places.
template <class Pixels>
struct NeighbourStore {
  using Taken = NeighboursSums;
  static constexpr int COLUMNS = Taken::ALONG_ROW;

  GatherSums sums;
  Epilogue epilogue;
  Position first;  // row and column of this thread's first element of line 0
  Pixels pixels;
  out_offset_t places[COLUMNS];  // offsets of the columns; -1: the output lacks it
  u64 lost = 0;                  // bit i: piece i must be recomputed
  static_assert(LINES * PIECES <= 64 || !CHECKED);

  template <class Places>
  device_inline NeighbourStore(const Pixels& of_tile, const Places& of_pixels, int first_row,
                               i64 image, i64 group, const GatherParams& params, int phase)
      : sums{params, image, group, phase},
        epilogue(epilogue_at(params, image, group, phase)),
        pixels(of_tile) {
    // The position of the warp's first thread, whose first sum is the warp's first.
    const Position warp = thread_position(slice_thread() / 32 * 32);
    first = {from_here(first_row + warp.m + Taken::first_row() * RUN_M),
             from_here(warp.n + Taken::first_column())};
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      const int n = first.n + Taken::column(i);
      places[i] = of_pixels.inside(n) ? of_pixels.place(n) : -1;
    }
  }

  device_inline int row(int index, int element) const {
    return first.m + row_step(index) + Taken::row(element) * RUN_M;
  }
  device_inline int pixel(int /*index*/, int element) const {
    return first.n + Taken::column(element);
  }
  device_inline bool exists(int index, int element) const {
    return row(index, element) < ROWS && pixels.inside(pixel(index, element));
  }

  // Stores a piece of line `index`, from element `from` on.
  device_inline void operator()(compute_t (&piece)[PIECE], int index, int from) {
    u32 existing = 0;
#pragma unroll
    for (int i = 0; i < PIECE; ++i)
      existing |= static_cast<u32>(places[i % COLUMNS] >= 0 && row(index, from + i) < ROWS) << i;
    if (!scale_back(piece, existing)) {
      lost |= u64(1) << (index * PIECES + from / PIECE);
      return;
    }
#pragma unroll
    for (int i = 0; i < PIECE; ++i) {
      if (!(existing >> i & 1)) continue;
      const int row_at = row(index, from + i);
      const out_offset_t at =
          places[i % COLUMNS] + static_cast<out_offset_t>(row_at) * OUT_STRIDE_ROW;
      epilogue.store_one(at, residual_place(pixels, row_at, pixel(index, from + i), at), piece[i],
                         epilogue.bias_of(row_at));
    }
  }

  device_inline void finish() const { add_up_lost(*this); }
};
