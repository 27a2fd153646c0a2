// How a lane reads the operands of a halo tile.
#pragma once

#include "conv/halo/filter_reader.cuh"
#include "conv/halo/halo_pixels.cuh"

// The addresses of a lane's operands.
struct FragmentReader {
  FilterReader filter;
  u32 pixels[READS_N];

  device_inline FragmentReader(const byte_t* first_tap, const Position& position, int lane,
                               const HaloTile& tile)
      : filter(first_tap, position, lane) {
    const int warp_n = position.n - lane % LANES_N * RUN_N;
#pragma unroll
    for (int j = 0; j < PRODUCTS_N; j += READ_PRODUCTS) {
      // With an odd number of products, the last one is read twice and used once.
      const int pixel = j + 1 < PRODUCTS_N ? fragment_row_n(lane) : fragment_row_n(lane) % 8;
      pixels[j / READ_PRODUCTS] =
          tile.place(warp_n + j * 8 + pixel) * PITCH + fragment_part_n(lane);
    }
  }

  // tap: the offset of the tap's filter from the first one, in bytes. fragment: the fragment's
  // number in the step.
  device_inline void load(Fragments& to, const byte_t* halo, const Step& step, int tap,
                          int fragment) const {
    filter.load(to, tap, fragment);
    load_fragments_n(to, halo + tap_pixel(step.r, step.s) * PITCH + fragment * FRAGMENT_BYTES,
                     pixels);
  }
};
