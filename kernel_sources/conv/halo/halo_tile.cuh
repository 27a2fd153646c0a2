// The geometry of a halo tile. The output is cut into STRIPS vertical strips of STRIP columns; a
// strip's pixels are counted image by image, row by row, and a tile is TILE_N of them in a row. The
// tile reads a band of source rows: images follow each other every IMAGE_ROWS rows (those that an
// image's pixels read, padding included), so tap (r, s) of every pixel is at the same offset from
// the pixel's first tap.
#pragma once

#include "common/magic.cuh"
#include "conv/geometry/first_tap.cuh"
#include "conv/geometry/gather_params.h"
#include "conv/geometry/output_place.cuh"
#include "conv/geometry/phase_taps.cuh"
#include "conv/geometry/tap_walk.cuh"
#include "conv/geometry/tile_sums.cuh"

constexpr int HALO_PIXELS = HALO_ROWS * HALO_COLUMNS;

// Order of blocks, fastest first: blocks that share a tile, tiles of rows, groups, strips, tiles of
// pixels.
struct HaloTile : TapWindow {
  u32 group;
  int first_row;  // the tile's first row of the output
  u64 image;      // image of the tile's first pixel
  u32 images;     // images from there on
  u32 first;      // the first pixel's number in its image's strip
  int first_p;    // the first pixel's row
  int first_q;    // the strip's first column

  device_inline explicit HaloTile(u32 tile, const GatherParams& params) {
    u32 rest = DIVIDE(DIV_TILES_M, tile);
    first_row = static_cast<int>(tile - rest * DIV_TILES_M) * TILE_M;
    u32 next = DIVIDE(DIV_GROUPS, rest);
    group = rest - next * DIV_GROUPS;
    const u32 pixel_tile = DIVIDE(DIV_STRIPS, next);
    first_q = static_cast<int>(next - pixel_tile * DIV_STRIPS) * STRIP;
    const u64 pixel = static_cast<u64>(pixel_tile) * TILE_N;
    image = DIVIDE(BLOCK_DIV_STRIP_PIXELS, pixel);
    first = static_cast<u32>(pixel - image * DIV_STRIP_PIXELS);
    const u64 left = static_cast<u64>(params.images) - image;
    constexpr u32 MOST = TILE_N + 1;  // most images that a tile has
    images = left < MOST ? static_cast<u32>(left) : MOST;
    first_p = static_cast<int>(DIVIDE(DIV_STRIP, first));

    const u32 last = first + TILE_N - 1;
    const int last_p = last < DIV_STRIP_PIXELS ? static_cast<int>(DIVIDE(DIV_STRIP, last)) : -1;
    r = live_taps<PADDED_H>(last_p < 0 ? 0 : first_p, last_p < 0 ? OUT_P[0] - 1 : last_p, STRIDE_H,
                            ORIGIN_H[0], STEP_H, SOURCE_H, TAPS_R);
    const int last_q = first_q + STRIP < OUT_Q[0] ? first_q + STRIP - 1 : OUT_Q[0] - 1;
    s = live_taps<PADDED_W>(first_q, last_q, STRIDE_W, ORIGIN_W[0], STEP_W, SOURCE_W, TAPS_S);
    // A group of taps is whole rows of taps.
    if (TAP_GROUP > 1) s = {0, TAPS_S};
    if (TAP_GROUP > TAPS_S) r = {0, TAPS_R};
    // With several halos in flight, at least LEAST_TAPS steps must separate two of them.
    if (taps() < LEAST_TAPS) r = {0, TAPS_R}, s = {0, TAPS_S};
  }

  // Pixel n of the tile, counted from its first image, as TileStore asks for it.
  device_inline Pixel at(int n) const {
    const u32 index = first + n;
    Pixel pixel;
    pixel.image = static_cast<int>(DIVIDE(DIV_STRIP_PIXELS, index));
    const u32 rest = index - pixel.image * DIV_STRIP_PIXELS;
    pixel.o = 0;
    pixel.p = static_cast<int>(DIVIDE(DIV_STRIP, rest));
    pixel.q = first_q + static_cast<int>(rest - pixel.p * DIV_STRIP);
    return pixel;
  }
  device_inline bool inside(int n) const {
    const Pixel pixel = at(n);
    return static_cast<u32>(pixel.image) < images && (WHOLE_STRIPS || pixel.q < OUT_Q[0]);
  }

  // The place of pixel n's topmost, leftmost tap in the halo.
  device_inline int place(int n) const {
    const Pixel pixel = at(n);
    return (pixel.image * IMAGE_ROWS + (pixel.p - first_p) * STRIDE_H) * HALO_COLUMNS +
           (pixel.q - first_q) * STRIDE_W;
  }

  // The source offset of place `place` of the halo, from the tile's first image; -1: outside.
  device_inline int source_offset(int place) const {
    const int halo_row = place / HALO_COLUMNS;
    const int row = first_p * STRIDE_H + halo_row;
    const u32 in_images = static_cast<u32>(row) / IMAGE_ROWS;
    const int h = TOP + row - static_cast<int>(in_images) * IMAGE_ROWS;
    const int w = LEFT + first_q * STRIDE_W + (place - halo_row * HALO_COLUMNS);
    const bool exists = in_images < images && static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                        static_cast<u32>(w) < static_cast<u32>(SOURCE_W);
    return exists
               ? static_cast<int>(in_images) * static_cast<int>(SOURCE_STRIDE_N) +
                     h * static_cast<int>(SOURCE_STRIDE_H) + w * static_cast<int>(SOURCE_STRIDE_W)
               : -1;
  }
};
