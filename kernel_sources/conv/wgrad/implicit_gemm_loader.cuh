// Loads tiles of a filter gradient's operands into shared memory: dy as [TILE_K][filters] and x as
// [TILE_K][columns]. The reduction runs over the pixels of dy.
#pragma once

#include "conv/geometry/pixel_bounds.cuh"
#include "conv/load/operand_mover.cuh"
#include "conv/wgrad/tile.cuh"

using FilterLanes = Lanes<TILE_M, DY_LANES_ON_K>;
using ColumnLanes = Lanes<TILE_N, X_LANES_ON_K>;

device_inline u32 range_bits(TapRange range, int shift) {
  return ((1u << (range.end - range.begin)) - 1) << range.begin << shift;
}

// The taps of a pixel that lie inside x, as bits in the order of tap_bits().
device_inline u32 inside_bits(Pixel at) {
  u32 bits = 0;
  if constexpr (TAP_MASK && PADDED_D)
    bits |= range_bits(
        live_taps<PADDED_D>(at.o, at.o, STRIDE_D, ORIGIN_D[0], STEP_D, SOURCE_D, TAPS_T), 0);
  if constexpr (TAP_MASK && PADDED_H)
    bits |= range_bits(
        live_taps<PADDED_H>(at.p, at.p, STRIDE_H, ORIGIN_H[0], STEP_H, SOURCE_H, TAPS_R), TAPS_T);
  if constexpr (TAP_MASK && PADDED_W)
    bits |=
        range_bits(live_taps<PADDED_W>(at.q, at.q, STRIDE_W, ORIGIN_W[0], STEP_W, SOURCE_W, TAPS_S),
                   TAPS_T + TAPS_R);
  return bits;
}

// This thread's part of the tiles of x.
struct ColumnLoader {
  const element_t* x;  // this block's group in image 0, minus bias() elements
  int k0, outer0;
  offset_t offset[ColumnLanes::COUNT];
  u32 bits[ColumnLanes::COUNT];  // used with TAP_MASK
  Tap tap[ColumnLanes::COUNT];   // used without TAP_MASK
  Mover<ColumnLanes::PASSES * ColumnLanes::COUNT> mover;

  device_inline ColumnLoader(const element_t* group, const TapBox& taps, int first_column)
      : x(opaque(group - bias(0))),
        k0(ColumnLanes::first_k(slice_thread())),
        outer0(ColumnLanes::first_outer(slice_thread())) {
#pragma unroll
    for (int i = 0; i < ColumnLanes::COUNT; ++i) {
      // Beyond the last column, that one is read again, and the sums are never stored.
      const int column = first_column + outer0 + ColumnLanes::STEP * i;
      tap[i] = taps.decode(column < REDUCTION ? column : REDUCTION - 1);
      offset[i] = tap_offset(tap[i]);
      bits[i] = tap_bits(tap[i]);
    }
  }

  // Pixels from `end` on count as zero.
  template <int SHARES>
  device_inline void load(int share, bool active, int k_tile, u32 end, compute_t* tile) {
    const PassShare<ColumnLanes::PASSES, SHARES> passes(share);
#pragma unroll
    for (int pass = passes.begin; pass < passes.end; ++pass) {
      const int row = k0 + ColumnLanes::K_STEP * pass;
      const u32 k = k_tile * TILE_K + row;
      const Pixel pixel = pixel_at(k);
      const element_t* from = opaque(x + static_cast<i64>(pixel.image) * SOURCE_STRIDE_N +
                                     pixel_offset(in_first_image(pixel)));
      const u32 inside = inside_bits(pixel);
#pragma unroll
      for (int i = 0; i < ColumnLanes::COUNT; ++i) {
        bool valid = k < end;
        if constexpr (TAP_MASK && PADDED) {
          valid = valid && (bits[i] & ~inside) == 0;
        } else {
          if constexpr (PADDED_D) valid = valid && in_depth(first_d(pixel, 0), tap[i].t);
          if constexpr (PADDED_H) valid = valid && in_height(first_h(pixel, 0), tap[i].r);
          if constexpr (PADDED_W) valid = valid && in_width(first_w(pixel, 0), tap[i].s);
        }
        mover.template load<(SHARES > 1)>(pass * ColumnLanes::COUNT + i,
                                          tile + row * PITCH_N + outer0 + ColumnLanes::STEP * i,
                                          from + offset[i], valid, active);
      }
    }
  }

  device_inline void store(compute_t* tile) const {
#pragma unroll
    for (int pass = 0; pass < ColumnLanes::PASSES; ++pass)
#pragma unroll
      for (int i = 0; i < ColumnLanes::COUNT; ++i)
        mover.store(
            pass * ColumnLanes::COUNT + i,
            tile + (k0 + ColumnLanes::K_STEP * pass) * PITCH_N + outer0 + ColumnLanes::STEP * i);
  }
};

// This thread's part of the tiles of dy.
struct GradientLoader {
  const element_t* dy;  // address of this thread's first filter
  int k0, outer0, filters;
  Mover<FilterLanes::PASSES * FilterLanes::COUNT> mover;

  device_inline GradientLoader(const element_t* group, int first_filter)
      : k0(FilterLanes::first_k(slice_thread())), outer0(FilterLanes::first_outer(slice_thread())) {
    filters = ROWS - first_filter - outer0;  // number of filters from this thread's first on
    dy = opaque(group + static_cast<i64>(first_filter + outer0) * OUT_STRIDE_ROW);
  }

  template <int SHARES>
  device_inline void load(int share, bool active, int k_tile, u32 end, compute_t* tile) {
    const PassShare<FilterLanes::PASSES, SHARES> passes(share);
#pragma unroll
    for (int pass = passes.begin; pass < passes.end; ++pass) {
      const int row = k0 + FilterLanes::K_STEP * pass;
      const u32 k = k_tile * TILE_K + row;
      const Pixel pixel = pixel_at(k);
      const element_t* from =
          dy + static_cast<i64>(pixel.image) * OUT_STRIDE_N + output_offset(in_first_image(pixel));
#pragma unroll
      for (int i = 0; i < FilterLanes::COUNT; ++i) {
        const bool in_filters = ROWS % TILE_M == 0 || FilterLanes::STEP * i < filters;
        mover.template load<(SHARES > 1)>(
            pass * FilterLanes::COUNT + i, tile + row * PITCH_M + outer0 + FilterLanes::STEP * i,
            from + static_cast<out_offset_t>(FilterLanes::STEP * i) * OUT_STRIDE_ROW,
            k < end && in_filters, active);
      }
    }
  }

  device_inline void store(compute_t* tile) const {
#pragma unroll
    for (int pass = 0; pass < FilterLanes::PASSES; ++pass)
#pragma unroll
      for (int i = 0; i < FilterLanes::COUNT; ++i)
        mover.store(
            pass * FilterLanes::COUNT + i,
            tile + (k0 + FilterLanes::K_STEP * pass) * PITCH_M + outer0 + FilterLanes::STEP * i);
  }
};
