// Brings tiles of the two lowered operands to shared memory: [TILE_K][pixels] of x, gathered, and
// [TILE_K][filters] of w.
//
// 256 threads walk an operand tile in one of two ways, chosen by how it lies in memory:
//   lanes along the outer index (pixels, filters)   a warp takes row k = warp, 32 outer a turn
//   lanes along the reduction                       a warp takes 8 k of 4 outer a turn
// In both, a thread keeps one k a pass, so the reduction index is taken apart once a pass, and its
// outer indices are 32 apart, so one set of pixel offsets serves the whole main loop.
#pragma once

#include "common/compute_type.cuh"
#include "conv/forward_index.cuh"
#include "conv/pixel_bounds.cuh"
#include "target/async_copy.cuh"

constexpr int PASSES = TILE_K / 8;
constexpr int PIXELS_PER_THREAD = TILE_N / 32;
constexpr int FILTERS_PER_THREAD = TILE_M / 32;

// Rows are padded where lanes run along the reduction: 8 k of 4 outer then fall into 32 banks.
constexpr int PITCH_M = TILE_M + (FILTER_LANES_ON_K ? VECTOR : 0);
constexpr int PITCH_N = TILE_N + (PIXEL_LANES_ON_K ? VECTOR : 0);

template <bool LANES_ON_K>
device_inline int first_k(int thread) {
  return LANES_ON_K ? thread % 8 : thread / 32;
}
template <bool LANES_ON_K>
device_inline int first_outer(int thread) {
  return LANES_ON_K ? thread / 8 : thread % 32;
}

// One element's way from global to shared memory. Where the element type is the compute type,
// an asynchronous copy; otherwise the element waits in a register until its tile may be written.
template <int COUNT>
struct Mover {
  element_t staged[ASYNC ? 1 : COUNT];

  device_inline void load(int index, compute_t* shared, const element_t* global, bool valid) {
    if constexpr (ASYNC) {
      async_copy<sizeof(element_t)>(shared, global, valid);
    } else {
      staged[index] = valid ? *global : element_t{};
    }
  }
  device_inline void store(int index, compute_t* shared) const {
    if constexpr (!ASYNC) *shared = to_compute(staged[index]);
  }
};

// This thread's part of the tiles of x.
struct PixelLoader {
  const element_t* x;  // BIAS elements before the first image of the tile, this block's group
  int k0, outer0;
  pixel_offset_t offset[PIXELS_PER_THREAD];
  PixelBounds<PIXELS_PER_THREAD> bounds;
  Mover<PASSES * PIXELS_PER_THREAD> mover;

  // first_pixel: of the tile, counted in its first image; last: the last pixel there is, likewise.
  device_inline PixelLoader(const element_t* x_group, u32 first_pixel, u32 last)
      : x(opaque(x_group - BIAS)),
        k0(first_k<PIXEL_LANES_ON_K>(thread_x())),
        outer0(first_outer<PIXEL_LANES_ON_K>(thread_x())) {
#pragma unroll
    for (int i = 0; i < PIXELS_PER_THREAD; ++i) {
      // Beyond the end, read the last pixel again: what comes of it is never stored.
      const u32 index = first_pixel + outer0 + 32 * i;
      const Pixel pixel = decode_pixel(index < last ? index : last);
      offset[i] = pixel_offset(pixel);
      bounds.set(i, pixel);
    }
    if constexpr (TAP_MASK) bounds.make_masks();
  }

  device_inline void load(int k_tile, compute_t* tile) {
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) {
      const int row = k0 + 8 * pass;
      const u32 k = k_tile * TILE_K + row;
      const bool in_reduction = REDUCTION % TILE_K == 0 || k < REDUCTION;
      const Tap tap = decode_reduction(k);
      const element_t* source = opaque(x + tap_offset(tap));
      const u32 bits = tap_bits(tap);
#pragma unroll
      for (int i = 0; i < PIXELS_PER_THREAD; ++i) {
        mover.load(pass * PIXELS_PER_THREAD + i, tile + row * PITCH_N + outer0 + 32 * i,
                   source + offset[i], in_reduction && bounds.inside(i, tap, bits));
      }
    }
  }

  device_inline void store(compute_t* tile) const {
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass)
#pragma unroll
      for (int i = 0; i < PIXELS_PER_THREAD; ++i)
        mover.store(pass * PIXELS_PER_THREAD + i,
                    tile + (k0 + 8 * pass) * PITCH_N + outer0 + 32 * i);
  }
};

// This thread's part of the tiles of w.
struct FilterLoader {
  const element_t* w;  // at this thread's first filter
  int k0, outer0, filters;
  Mover<PASSES * FILTERS_PER_THREAD> mover;

  device_inline FilterLoader(const element_t* w_group, int first_filter)
      : k0(first_k<FILTER_LANES_ON_K>(thread_x())),
        outer0(first_outer<FILTER_LANES_ON_K>(thread_x())) {
    filters = FILTERS - first_filter - outer0;  // from this thread's first on
    w = opaque(w_group + static_cast<offset_t>(first_filter + outer0) * W_STRIDE_K);
  }

  device_inline void load(int k_tile, compute_t* tile) {
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) {
      const int row = k0 + 8 * pass;
      const u32 k = k_tile * TILE_K + row;
      const bool in_reduction = REDUCTION % TILE_K == 0 || k < REDUCTION;
      const offset_t along_k = FILTER_K_LINEAR ? static_cast<offset_t>(k) * FILTER_K_STEP
                                               : filter_offset(decode_reduction(k));
      const element_t* source = w + along_k;
#pragma unroll
      for (int i = 0; i < FILTERS_PER_THREAD; ++i) {
        const bool in_filters = FILTERS % TILE_M == 0 || 32 * i < filters;
        mover.load(pass * FILTERS_PER_THREAD + i, tile + row * PITCH_M + outer0 + 32 * i,
                   source + static_cast<offset_t>(32 * i) * W_STRIDE_K, in_reduction && in_filters);
      }
    }
  }

  device_inline void store(compute_t* tile) const {
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass)
#pragma unroll
      for (int i = 0; i < FILTERS_PER_THREAD; ++i)
        mover.store(pass * FILTERS_PER_THREAD + i,
                    tile + (k0 + 8 * pass) * PITCH_M + outer0 + 32 * i);
  }
};
