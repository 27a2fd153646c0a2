// The output of a dense gather: stores a tile's sums slab by slab.
#pragma once

#include "conv/dense/tile.cuh"
#include "target/sum_registers.cuh"

// Included after tile.cuh, which it uses.
#include "conv/dense/store.cuh"

using Sums = SumRegisters<float, LEFT, BLOCK_RIGHT / 8, false, PROMOTE_LOCAL>;

// A slab's place in the output for TMA: RESULT_LINE rows from `row` on of the pixels from `pixel`
// on; PLANAR: 64 or BLOCK_RIGHT rows of SLAB_LINE pixels of an image.
struct OutputPlace {
  static constexpr bool BY_THREADS = false;
  const Params& params;
  int phase, row;
  u32 pixel;
  int image, matrix;

  // `rows` and `pixels` into a tile.
  device_inline OutputPlace(const Params& of, const Tile& tile, int rows, int pixels)
      : params(of),
        phase(tile.phase),
        row(tile.first_row + rows),
        pixel(tile.first_pixel + static_cast<u32>(IMAGES > 1 ? 0 : pixels)),
        image(tile.image + (IMAGES > 1 ? pixels / IMAGE_PIXELS : 0)),
        matrix(tile.matrix) {}

  device_inline void next_block() {
    if constexpr (!PLANAR)
      row += RESULT_LINE;
    else if constexpr (IMAGES > 1)
      ++image;
    else
      pixel += SLAB_LINE;
  }
  // The phase of the row, and the row in it. Rows beyond those of the last phase are beyond those
  // of its map, too.
  device_inline int row_phase() const {
    if constexpr (PHASES_JOINED) return row / ROWS < PHASES ? row / ROWS : PHASES - 1;
    return phase;
  }
  device_inline int row_in_phase() const { return PHASES_JOINED ? row - row_phase() * ROWS : row; }
  // Called by one thread.
  device_inline void store(const unsigned char* slab) const {
    const TensorMap& map = params.maps[output_map(row_phase())];
    if constexpr (PLANAR) {
      const int at[3] = {static_cast<int>(pixel), row, image};
      bulk_store(map, slab, at);
    } else if constexpr (MATRICES > 1) {
      const BoxAt at(row, matrix, 0, 0, static_cast<int>(pixel));
      bulk_store(map, slab, at.at);
    } else if (OUT_IN_LINE) {
      const int at[2] = {row_in_phase(), static_cast<int>(pixel)};
      bulk_store(map, slab, at);
    } else {
      const PixelPlace place(pixel, phase);
      const BoxAt at(row_in_phase(), place.q, place.p, place.o, place.n);
      bulk_store_im2col(map, slab, at.at);
    }
  }
  device_inline void load(unsigned char* slab, Mbarrier& landed) const {
    load_from(params.maps[residual_map(row_phase())], RESIDUAL ? Z_IN_LINE : OUT_IN_LINE, slab,
              landed);
  }
  // From a tensor of the output's sizes; in_line: one stride leads from each pixel to the next.
  device_inline void load_from(const TensorMap& map, bool in_line, unsigned char* slab,
                               Mbarrier& landed) const {
    if constexpr (PLANAR) {
      const int at[3] = {static_cast<int>(pixel), row, image};
      bulk_load(slab, map, landed, at);
    } else if constexpr (MATRICES > 1) {
      const BoxAt at(row, matrix, 0, 0, static_cast<int>(pixel));
      bulk_load(slab, map, landed, at.at);
    } else if (in_line) {
      const int at[2] = {row_in_phase(), static_cast<int>(pixel)};
      bulk_load(slab, map, landed, at);
    } else {
      const PixelPlace place(pixel, phase);
      const BoxAt at(row_in_phase(), place.q, place.p, place.o, place.n);
      bulk_load_im2col(slab, map, landed, at.at, TapAt(0, 0, 0).at);
    }
  }
};

// A slab's place in the output for stores by threads: SLAB_LINE pixels from `pixel` on of rows from
// `row` on. A thread stores STORE_PIXELS pixels of a row at a time.
struct ThreadsPlace {
  static constexpr bool BY_THREADS = true;
  static constexpr int BYTES = STORE_PIXELS * static_cast<int>(sizeof(element_t));
  static constexpr int UNITS = STORE_PIXELS > 0 ? SLAB_LINE / STORE_PIXELS : 1;  // stores of a line
  struct alignas(BYTES > 2 ? BYTES : 2) Unit {
    unsigned short half[BYTES > 0 ? BYTES / 2 : 1];
  };
  const DenseParams& params;
  int phase, row;
  u32 pixel;

  // `rows` and `pixels` into a tile.
  device_inline ThreadsPlace(const Params& of, const Tile& tile, int rows, int pixels)
      : params(of.common),
        phase(tile.phase),
        row(tile.first_row + rows),
        pixel(tile.first_pixel + static_cast<u32>(pixels)) {}

  device_inline void next_block() { pixel += SLAB_LINE; }
  device_inline void store(const unsigned char* slab) const {
    auto* const out = static_cast<output_t*>(params.out) + OUT_FIRST[phase];
    const Offsets strides{OUT_STRIDE_N, OUT_STRIDE_O, OUT_STRIDE_P, OUT_STRIDE_Q};
    each(strides, OUT_STRIDE_ROW, [&](int place, i64 offset) {
      *reinterpret_cast<Unit*>(out + offset) = *reinterpret_cast<const Unit*>(slab + place);
    });
  }
  device_inline void load(unsigned char* slab) const {
    const auto* const z = static_cast<const output_t*>(params.z) + Z_FIRST[phase];
    const Offsets strides{Z_STRIDE_N, Z_STRIDE_O, Z_STRIDE_P, Z_STRIDE_Q};
    each(strides, Z_STRIDE_ROW, [&](int place, i64 offset) {
      *reinterpret_cast<Unit*>(slab + place) = *reinterpret_cast<const Unit*>(z + offset);
    });
  }

 private:
  struct Offsets {
    i64 n, o, p, q;
  };
  // Calls f(byte offset in the slab, element offset in the tensor) for this thread's units inside
  // the tensor.
  template <class F>
  device_inline void each(const Offsets& strides, i64 row_stride, const F& f) const {
    const int thread = static_cast<int>(thread_x() % 128), unit = thread % UNITS;
    const u32 at = pixel + static_cast<u32>(unit * STORE_PIXELS);
    const PixelPlace place(at, phase);
    if (at >= params.images * static_cast<u32>(OUT_O[phase] * OUT_P[phase] * OUT_Q[phase])) return;
    const i64 offset =
        place.n * strides.n + place.o * strides.o + place.p * strides.p + place.q * strides.q;
#pragma unroll 4
    for (int line = thread / UNITS; line < SLAB_LINES && row + line < ROWS * GROUPS;
         line += 128 / UNITS)
      f(place_in_block(line, unit * BYTES / 16) + unit * BYTES % 16,
        offset + (row + line) * row_stride);
  }
};

template <bool THREADS>
struct PlaceOf {
  using type = OutputPlace;
};
template <>
struct PlaceOf<true> {
  using type = ThreadsPlace;
};
using ResultPlace = PlaceOf<(STORE_PIXELS > 0)>::type;

// Stores the sums of operand A number L, whose rows are lines of the slab, a slab's columns at a
// time.
template <int L, int FIRST>
device_inline void store_lines(Store& store, const Sums& sums, const Params& params,
                               const Tile& tile, int left, bool any) {
  constexpr int END = FIRST + SLAB_LINE / 8;
  const ResultPlace place(params, tile, PIXELS_LEFT ? FIRST * 8 : left,
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
    const ResultPlace place(params, tile, PIXELS_LEFT ? 0 : left, PIXELS_LEFT ? left : 0);
    store.store<L, 0, BLOCK_RIGHT / 8>(sums, place, any);
  }
  if constexpr (L + 1 < LEFT) store_tile<L + 1>(store, sums, params, tile, group);
}
