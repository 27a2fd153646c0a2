// The tiles of a filter gradient with few channels per group, and where their elements are in dw. A
// tile is BLOCK_ROWS channels of dy, by CHANNELS of the GROUP_CHANNELS channels of x in each of
// their groups, by FILTER_ROWS rows of one plane of the filter.
#pragma once

#include "common/compute_type.cuh"
#include "conv/geometry/depthwise_wgrad_params.h"
#include "target/kernel.cuh"

constexpr int TILE_TAPS = FILTER_ROWS * TAPS_S;
constexpr int TAP_ELEMENTS = CHANNELS * BLOCK_ROWS;
constexpr int TILE_ELEMENTS = TILE_TAPS * TAP_ELEMENTS;
constexpr u32 CHANNEL_TILES = (GROUPS * ROWS + BLOCK_ROWS - 1) / BLOCK_ROWS;
constexpr u32 IN_TILES = (GROUP_CHANNELS + CHANNELS - 1) / CHANNELS;
constexpr u32 ROW_TILES = (TAPS_R + FILTER_ROWS - 1) / FILTER_ROWS;
constexpr u32 TILES = CHANNEL_TILES * IN_TILES * ROW_TILES * TAPS_T;

struct DepthwiseTile {
  int out, in;     // the first channel of dy; the first channel of x within its group
  int plane, row;  // the filter's plane, and the first row in it
  device_inline explicit DepthwiseTile(u32 number)
      : out(static_cast<int>(number % CHANNEL_TILES) * BLOCK_ROWS),
        in(static_cast<int>(number / CHANNEL_TILES % IN_TILES) * CHANNELS),
        plane(static_cast<int>(number / (CHANNEL_TILES * IN_TILES * ROW_TILES))),
        row(static_cast<int>(number / (CHANNEL_TILES * IN_TILES) % ROW_TILES) * FILTER_ROWS) {}
};

// The first channel of x in the group of channel `out` of dy.
device_inline int first_channel(int out) { return out / ROWS * CHANNELS; }

// Finishes element `element` of a tile, [tap][channel of x][channel of dy], and stores it to dw.
device_inline void store_element(const DepthwiseWgradParams& params, const DepthwiseTile& tile,
                                 int element, compute_t sum) {
  const int tap = element / TAP_ELEMENTS, rest = element - tap * TAP_ELEMENTS;
  const int channel = tile.in + rest / BLOCK_ROWS, out = tile.out + rest % BLOCK_ROWS;
  const int r = tile.row + tap / TAPS_S, s = tap % TAPS_S;
  if (out >= GROUPS * ROWS || channel >= GROUP_CHANNELS || r >= TAPS_R) return;
  output_t* const to = static_cast<output_t*>(params.dw) + DW_FIRST +
                       static_cast<i64>(out / ROWS) * DW_STRIDE_GROUP +
                       static_cast<i64>(out % ROWS) * DW_STRIDE_ROW +
                       static_cast<i64>(channel) * DW_STRIDE_C +
                       static_cast<i64>(tile.plane) * DW_STRIDE_T +
                       static_cast<i64>(r) * DW_STRIDE_R + static_cast<i64>(s) * DW_STRIDE_S;
  const compute_t beta = static_cast<compute_t>(params.beta);
  compute_t value = static_cast<compute_t>(params.alpha) * sum;
  if (beta != compute_t(0)) value += beta * to_compute(*to);
  *to = from_compute<output_t>(value);
}

device_inline compute_t* partials_of(const DepthwiseWgradParams& params, u32 group, u32 tile) {
  return static_cast<compute_t*>(params.partials) + static_cast<u64>(group) * params.elements +
         static_cast<u64>(tile) * TILE_ELEMENTS;
}
