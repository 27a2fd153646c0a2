// The producer of a dense convolution: one thread, which asks the copy engine for both operands of
// every step of every tile, STAGES ahead of those who multiply.
#pragma once

#include "conv/dense/tile.cuh"
#include "target/bulk_copy.cuh"

// The filter's rows from `row` on, of a tap's channels from `channel` on: rows of 64 channels or,
// with FILTER_BY_CHANNELS, channels of 64 rows, one such block after the other.
device_inline void load_filter(unsigned char* to, const TensorMap& map, Mbarrier& barrier, int row,
                               int channel, int r, int s) {
  if constexpr (FILTER_BY_CHANNELS) {
#pragma unroll
    for (int block = 0; block < TILE_ROWS / 64; ++block) {
      const int at[4] = {row + block * 64, s, r, channel};
      bulk_load(to + block * (64 * LINE_BYTES), map, barrier, at);
    }
  } else {
    const int at[4] = {channel, s, r, row};
    bulk_load(to, map, barrier, at);
  }
}

device_inline void produce(const Params& params, unsigned char* memory, Barriers& barriers) {
  constexpr u32 BYTES = static_cast<u32>(LEFT_BYTES + RIGHT_BYTES);
  Ring ring(1);
  const u32 tiles = params.common.tiles[PHASES - 1];
#pragma unroll 1
  for (u32 number = block_x(); number < tiles; number += grid_x()) {
    const Tile tile(number, params.common);
    const PixelPlace pixel(tile.first_pixel, tile.phase);
    const TensorMap& source = params.maps[tile.phase * 3];
    const TensorMap& filter = params.maps[tile.phase * 3 + 1];
    const int w = pixel.q * STRIDE_W + LOWER_W[tile.phase];
    const int h = pixel.p * STRIDE_H + LOWER_H[tile.phase];
    // From the tap whose place is lowest on.
#pragma unroll 1
    for (int r = 0; r < FILTER_R[tile.phase]; ++r)
#pragma unroll 1
      for (int s = 0; s < FILTER_S[tile.phase]; ++s) {
        const int of_filter_r = STEP_H < 0 ? FILTER_R[tile.phase] - 1 - r : r;
        const int of_filter_s = STEP_W < 0 ? FILTER_S[tile.phase] - 1 - s : s;
        const int tap[2] = {s * (STEP_W < 0 ? -STEP_W : STEP_W),
                            r * (STEP_H < 0 ? -STEP_H : STEP_H)};
#pragma unroll 1
        for (int channel = 0; channel < CHANNELS; channel += STEP_CHANNELS) {
          Mbarrier& landed = barriers.landed[ring.stage];
          barriers.free[ring.stage].wait(ring.parity);
          landed.arrive_and_expect(BYTES);
          unsigned char* const left = memory + ring.stage * STAGE_BYTES;
          unsigned char* const right = left + LEFT_BYTES;
          const int at[4] = {channel, w, h, pixel.n};
          bulk_load_im2col(PIXELS_LEFT ? left : right, source, landed, at, tap);
          load_filter(PIXELS_LEFT ? right : left, filter, landed, tile.first_row, channel,
                      of_filter_r, of_filter_s);
          ring.advance();
        }
      }
  }
}
