// The producer of a dense convolution: a thread that issues the copies of both operands for every
// step of every tile, up to STAGES ahead of the consumers.
#pragma once

#include "conv/dense/tile.cuh"
#include "target/bulk_copy.cuh"

// The start of a box of the filter. `inner` counts along the contiguous dimension, `outer` along
// the outermost one: channels and rows or, with FILTER_BY_CHANNELS, rows and channels.
device_inline BoxAt filter_box(int inner, const TapAt& tap, int outer) {
  return {inner, tap.at[0], tap.at[1], SPACE == 3 ? tap.at[SPACE - 1] : 0, outer};
}

// Loads the filter's rows from `row` on at a tap's channels from `channel` on: as rows of
// STEP_CHANNELS channels or, with FILTER_BY_CHANNELS, as blocks of channels of ROW_LINE rows.
device_inline void load_filter(unsigned char* to, const TensorMap& map, Mbarrier& barrier, int row,
                               int channel, const TapAt& tap) {
  if constexpr (FILTER_BY_CHANNELS) {
#pragma unroll
    for (int block = 0; block < TILE_ROWS / ROW_LINE; ++block) {
      const BoxAt place = filter_box(row + block * ROW_LINE, tap, channel);
      bulk_load(to + block * (STEP_CHANNELS * ROW_LINE_BYTES), map, barrier, place.at);
    }
  } else {
    const BoxAt place = filter_box(channel, tap, row);
    bulk_load(to, map, barrier, place.at);
  }
}

// PLANAR: loads the channels from `channel` on of the tile's pixels, one line of pixels after the
// other.
device_inline void load_planar(unsigned char* to, const TensorMap& map, Mbarrier& barrier,
                               int channel, const Tile& tile) {
#pragma unroll
  for (int line = 0; line < PIXEL_LINES / IMAGES; ++line) {
    const int at[3] = {static_cast<int>(tile.first_pixel) + line * PIXEL_LINE, channel, tile.image};
    bulk_load(to + line * PIXEL_LINE_BLOCK, map, barrier, at);
  }
}

// Of tiles whose results need no copies of their own.
struct NoLoads {
  template <class AllParams>
  device_inline NoLoads(const AllParams&, unsigned char*, Barriers&) {}
  device_inline void operator()(const Tile&, Ring&) const {}
};

// more(tile, ring): the steps that follow a tile's operands.
template <class Loads>
device_inline void produce(const Params& params, unsigned char* memory, Barriers& barriers,
                           const Loads& more) {
  Ring ring(1);
  const u32 tiles = params.common.tiles[PHASES - 1];
#pragma unroll 1
  for (u32 number = block_x(); number < tiles; number += grid_x()) {
    const Tile tile(number, params.common);
    const PixelPlace pixel(tile.first_pixel, tile.phase);
    const TensorMap& source = params.maps[source_map(tile.phase)];
    const TensorMap& filter = params.maps[filter_map(tile.phase)];
    const int w = pixel.q * STRIDE_W + LOWER_W[tile.phase];
    const int h = pixel.p * STRIDE_H + LOWER_H[tile.phase];
    const int d = pixel.o * STRIDE_D + LOWER_D[tile.phase];
    // The groups follow each other along the source's channels and along w's filters, which are the
    // rows of a forward pass.
    const int source_channel = tile.group() * CHANNELS;
    const int filter_row = tile.first_row - (GROUPS_IN_ROWS ? 0 : tile.group() * ROWS);
    const int filter_channel = GROUPS_IN_ROWS ? 0 : source_channel;
    // Taps are visited from the one with the lowest position on.
#pragma unroll 1
    for (int t = 0; t < FILTER_T[tile.phase]; ++t)
#pragma unroll 1
      for (int r = 0; r < FILTER_R[tile.phase]; ++r)
#pragma unroll 1
        for (int s = 0; s < FILTER_S[tile.phase]; ++s) {
          const int matrix_of_w = SHARED_FILTER ? 0 : tile.matrix;
          const TapAt of_filter(MATRICES > 1 ? matrix_of_w
                                : STEP_W < 0 ? FILTER_S[tile.phase] - 1 - s
                                             : s,
                                STEP_H < 0 ? FILTER_R[tile.phase] - 1 - r : r,
                                STEP_D < 0 ? FILTER_T[tile.phase] - 1 - t : t);
          const TapAt tap(s * APART_W, r * APART_H, t * APART_D);
#pragma unroll 1
          for (int channel = 0; channel < CHANNELS; channel += STEP_CHANNELS) {
            Mbarrier& landed = barriers.landed[ring.stage];
            barriers.free[ring.stage].wait(ring.parity);
            landed.arrive_and_expect(static_cast<u32>(LEFT_BYTES + RIGHT_BYTES));
            unsigned char* const left = memory + ring.stage * STAGE_BYTES;
            unsigned char* const right = left + LEFT_BYTES;
            unsigned char* const pixels = PIXELS_LEFT ? left : right;
            if constexpr (PLANAR) {
              load_planar(pixels, source, landed, source_channel + channel, tile);
            } else if constexpr (MATRICES > 1) {
              const BoxAt at(channel, SHARED_SOURCE ? 0 : tile.matrix, 0, 0, pixel.n);
              bulk_load(pixels, source, landed, at.at);
            } else {
              const BoxAt at(source_channel + channel, w, h, d, pixel.n);
              bulk_load_im2col(pixels, source, landed, at.at, tap.at);
            }
            load_filter(PIXELS_LEFT ? right : left, filter, landed, filter_row,
                        filter_channel + channel, of_filter);
            ring.advance();
          }
        }
    more(tile, ring);
  }
}
