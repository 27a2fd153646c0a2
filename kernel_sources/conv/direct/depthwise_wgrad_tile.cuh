// The tiles of a depthwise filter gradient: BLOCK_CHANNELS channels by FILTER_ROWS rows of the
// filter, and where their elements lie in dw.
#pragma once

#include "common/compute_type.cuh"
#include "conv/direct/depthwise_wgrad_params.h"
#include "target/kernel.cuh"

constexpr int BLOCK_CHANNELS = LANES_C * VECTOR;
constexpr int TILE_TAPS = FILTER_ROWS * TAPS_S;
constexpr int TILE_ELEMENTS = TILE_TAPS * BLOCK_CHANNELS;
constexpr u32 CHANNEL_TILES = (GROUPS + BLOCK_CHANNELS - 1) / BLOCK_CHANNELS;
constexpr u32 TILES = CHANNEL_TILES * ((TAPS_R + FILTER_ROWS - 1) / FILTER_ROWS);

struct DepthwiseTile {
  int channel, row;  // the first ones
  device_inline explicit DepthwiseTile(u32 number)
      : channel(static_cast<int>(number % CHANNEL_TILES) * BLOCK_CHANNELS),
        row(static_cast<int>(number / CHANNEL_TILES) * FILTER_ROWS) {}
};

// Element `element` of a tile, [tap][channel], finished, goes to dw.
device_inline void store_element(const DepthwiseWgradParams& params, const DepthwiseTile& tile,
                                 int element, compute_t sum) {
  const int tap = element / BLOCK_CHANNELS;
  const int channel = tile.channel + element - tap * BLOCK_CHANNELS;
  const int r = tile.row + tap / TAPS_S, s = tap % TAPS_S;
  if (channel >= GROUPS || r >= TAPS_R) return;
  element_t* const to = static_cast<element_t*>(params.dw) + DW_FIRST +
                        static_cast<i64>(channel) * DW_STRIDE_GROUP +
                        static_cast<i64>(r) * DW_STRIDE_R + static_cast<i64>(s) * DW_STRIDE_S;
  const compute_t beta = static_cast<compute_t>(params.beta);
  compute_t value = static_cast<compute_t>(params.alpha) * sum;
  if (beta != compute_t(0)) value += beta * to_compute(*to);
  *to = from_compute<element_t>(value);
}

device_inline compute_t* partials_of(const DepthwiseWgradParams& params, u32 group, u32 tile) {
  return static_cast<compute_t*>(params.partials) + static_cast<u64>(group) * params.elements +
         static_cast<u64>(tile) * TILE_ELEMENTS;
}
