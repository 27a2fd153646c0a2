// Loads tiles of the two lowered operands to shared memory: the gathered source as
// [TILE_K][pixels], and the filter as [TILE_K][rows].
#pragma once

#include "conv/geometry/gather_index.cuh"
#include "conv/geometry/pixel_bounds.cuh"
#include "conv/geometry/tile_sums.cuh"
#include "conv/load/operand_mover.cuh"

using PixelLanes = Lanes<TILE_N, PIXEL_LANES_ON_K>;
using RowLanes = Lanes<TILE_M, FILTER_LANES_ON_K>;

// This thread's part of the tiles of the source.
struct PixelLoader {
  const element_t* source;  // at the tile's first image and group, minus bias() elements
  int k0, outer0;
  pixel_offset_t offset[PixelLanes::COUNT];
  PixelBounds<PixelLanes::COUNT> bounds;
  Mover<PixelLanes::PASSES * PixelLanes::COUNT> mover;

  // last: the index of the last existing pixel.
  device_inline PixelLoader(const element_t* group, const PixelOrigin& origin, u32 last)
      : source(opaque(group - bias(origin.phase))),
        k0(PixelLanes::first_k(slice_thread())),
        outer0(PixelLanes::first_outer(slice_thread())) {
#pragma unroll
    for (int i = 0; i < PixelLanes::COUNT; ++i) {
      // Beyond the end the last pixel is read again; its results are never stored.
      const u32 index = origin.first + outer0 + PixelLanes::STEP * i;
      const Pixel pixel = origin.decode(index < last ? index : last);
      offset[i] = pixel_offset(pixel);
      bounds.set(i, pixel, origin.phase);
    }
    if constexpr (TAP_MASK) bounds.make_masks();
  }

  template <int SHARES>
  device_inline void load(int share, bool active, int k_tile, const TapBox& taps, compute_t* tile) {
    const PassShare<PixelLanes::PASSES, SHARES> passes(share);
#pragma unroll
    for (int pass = passes.begin; pass < passes.end; ++pass) {
      const int row = k0 + PixelLanes::K_STEP * pass;
      const u32 k = k_tile * TILE_K + row;
      const bool in_reduction = WHOLE_K_TILES || k < taps.reduction();
      const Tap tap = taps.decode(k);
      const element_t* from = opaque(source + tap_offset(tap));
      const u32 bits = tap_bits(tap);
#pragma unroll
      for (int i = 0; i < PixelLanes::COUNT; ++i) {
        mover.template load<(SHARES > 1)>(
            pass * PixelLanes::COUNT + i, tile + row * PITCH_N + outer0 + PixelLanes::STEP * i,
            from + offset[i], in_reduction && bounds.inside(i, tap, bits), active);
      }
    }
  }

  device_inline void store(compute_t* tile) const {
#pragma unroll
    for (int pass = 0; pass < PixelLanes::PASSES; ++pass)
#pragma unroll
      for (int i = 0; i < PixelLanes::COUNT; ++i)
        mover.store(
            pass * PixelLanes::COUNT + i,
            tile + (k0 + PixelLanes::K_STEP * pass) * PITCH_N + outer0 + PixelLanes::STEP * i);
  }
};

// This thread's part of the tiles of the filter.
struct FilterLoader {
  const element_t* w;  // at this thread's first row
  int k0, outer0, rows;
  Mover<RowLanes::PASSES * RowLanes::COUNT> mover;

  device_inline FilterLoader(const element_t* w_group, int first_row)
      : k0(RowLanes::first_k(slice_thread())), outer0(RowLanes::first_outer(slice_thread())) {
    rows = ROWS - first_row - outer0;  // the number of rows from this thread's first one on
    w = opaque(w_group + static_cast<offset_t>(first_row + outer0) * W_STRIDE_ROW);
  }

  template <int SHARES>
  device_inline void load(int share, bool active, int k_tile, const TapBox& taps, compute_t* tile) {
    const PassShare<RowLanes::PASSES, SHARES> passes(share);
#pragma unroll
    for (int pass = passes.begin; pass < passes.end; ++pass) {
      const int row = k0 + RowLanes::K_STEP * pass;
      const u32 k = k_tile * TILE_K + row;
      const bool in_reduction = WHOLE_K_TILES || k < taps.reduction();
      const offset_t along_k = FILTER_K_LINEAR ? static_cast<offset_t>(k) * FILTER_K_STEP
                                               : filter_offset(taps.decode(k));
      const element_t* from = w + along_k;
#pragma unroll
      for (int i = 0; i < RowLanes::COUNT; ++i) {
        const bool in_rows = ROWS % TILE_M == 0 || RowLanes::STEP * i < rows;
        mover.template load<(SHARES > 1)>(
            pass * RowLanes::COUNT + i, tile + row * PITCH_M + outer0 + RowLanes::STEP * i,
            from + static_cast<offset_t>(RowLanes::STEP * i) * W_STRIDE_ROW,
            in_reduction && in_rows, active);
      }
    }
  }

  device_inline void store(compute_t* tile) const {
#pragma unroll
    for (int pass = 0; pass < RowLanes::PASSES; ++pass)
#pragma unroll
      for (int i = 0; i < RowLanes::COUNT; ++i)
        mover.store(pass * RowLanes::COUNT + i,
                    tile + (k0 + RowLanes::K_STEP * pass) * PITCH_M + outer0 + RowLanes::STEP * i);
  }
};
