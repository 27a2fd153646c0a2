// How the operands of a halo tile lie in shared memory, and how a lane reads them. Of
// CHUNK_CHANNELS channels at a time: the source's band, [pixel][channel]; taps of the filter,
// [row][channel] or, with FILTER_ROWS_INNER, [channel][row].
#pragma once

#include "conv/fragments.cuh"
#include "conv/halo_tile.cuh"

constexpr int CHUNK_BYTES = CHUNK_STEPS * FRAGMENT_BYTES;
constexpr int CHUNK_CHANNELS = CHUNK_BYTES / static_cast<int>(sizeof(element_t));
constexpr int CHUNKS = (CHANNELS + CHUNK_CHANNELS - 1) / CHUNK_CHANNELS;
constexpr int PITCH = CHUNK_BYTES + 16;
constexpr int HALO_BYTES = HALO_PIXELS * PITCH;
constexpr int FILTER_PITCH =
    FILTER_ROWS_INNER ? TILE_M * static_cast<int>(sizeof(element_t)) + FILTER_PAD : PITCH;

static_assert(!FILTER_ROWS_INNER || TRANSPOSABLE);

// Where tap (r, s) lies from a pixel's topmost, leftmost one, in pixels of the halo.
device_inline int tap_pixel(int r, int s) {
  return tap_place<ROW_STEP * HALO_COLUMNS, COLUMN_STEP>(r, s);
}

// Where a lane finds its operands.
struct FragmentReader {
  const byte_t* filters;  // of a tap, from the first one's on
  const byte_t* filter;   // the lane's
  u32 pixels[(PRODUCTS_N + 1) / 2];

  device_inline FragmentReader(const byte_t* first_tap, const Position& position, int lane,
                               const HaloTile& tile)
      : filters(first_tap) {
    const int warp_m = position.m - lane / LANES_N * RUN_M;
    const int warp_n = position.n - lane % LANES_N * RUN_N;
    if constexpr (FILTER_ROWS_INNER)
      filter = filters + warp_m * static_cast<int>(sizeof(element_t)) +
               transposed_place_m<FILTER_PITCH>(lane);
    else
      filter = filters + (warp_m + fragment_row_m(lane)) * FILTER_PITCH + fragment_part_m(lane);
#pragma unroll
    for (int j = 0; j < PRODUCTS_N; j += 2) {
      // An odd product is read twice, and used once.
      const int pixel = j + 1 < PRODUCTS_N ? fragment_row_n(lane) : fragment_row_n(lane) % 8;
      pixels[j / 2] = tile.place(warp_n + j * 8 + pixel) * PITCH + fragment_part_n(lane);
    }
  }

  // tap: bytes from the first one's filters on. fragment: number of 32 bytes in the step.
  device_inline void load(Fragments& to, const byte_t* halo, const Step& step, int tap,
                          int fragment) const {
    const byte_t* const m = filter + tap;
    if constexpr (FILTER_ROWS_INNER)
      load_transposed_m<FILTER_PITCH>(to, m + fragment * (FRAGMENT_K * FILTER_PITCH));
    else
      load_fragments_m<FILTER_PITCH>(to, m + fragment * FRAGMENT_BYTES);
    load_fragments_n(to, halo + tap_pixel(step.r, step.s) * PITCH + fragment * FRAGMENT_BYTES,
                     pixels);
  }

  // A step of f32 by fused multiply-adds: slow, and right where infinities are about.
  device_inline void add_fused(Sums& sums, const byte_t* halo, const Step& step, int tap,
                               const Position& position, const HaloTile& tile) const {
    const byte_t* const m = filters + tap;
    const byte_t* const n = halo + tap_pixel(step.r, step.s) * PITCH;
    const auto word = [](const byte_t* at) { return *reinterpret_cast<const float*>(at); };
#pragma unroll 1
    for (int channel = 0; channel < CHUNK_CHANNELS; ++channel) {
      float of_rows[THREAD_M];
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) {
        const int row = position.m + row_step(i);
        of_rows[i] = word(m + (FILTER_ROWS_INNER ? channel * FILTER_PITCH + row * 4
                                                 : kept_row(row) * FILTER_PITCH + channel * 4));
      }
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) {
        const float pixel = word(n + tile.place(position.n + column_step(j)) * PITCH + channel * 4);
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i) sums.sum[i][j] += of_rows[i] * pixel;
      }
    }
  }
};
