// The geometry of tiles whose pixels wgmma reads from shared memory. wgmma needs groups of eight
// neighbouring pixels at equal distances, for every tap; a tap is the same number of places away
// for all pixels of the tile.
//
// Lines: the pixels of the whole batch form one line of places, LINE_ROWS rows of LINE_COLUMNS
// places for each image. Places between rows, and between images, are padding that both neighbours
// share, and idle columns of the product. A tile may begin anywhere.
//
// STRIPS > 0: the output is cut into strips of eight columns, and a tile is TILE_ROWS rows of
// STRIPS neighbouring strips of one image, strip by strip.
#pragma once

#include "common/magic.cuh"
#include "conv/geometry/first_tap.cuh"
#include "conv/geometry/gather_params.h"
#include "conv/geometry/output_place.cuh"
#include "conv/geometry/phase_taps.cuh"
#include "conv/geometry/tap_walk.cuh"
#include "conv/geometry/tile_sums.cuh"

constexpr int EXTENT_H = (TAPS_R - 1) * DISTANCE_H, EXTENT_W = (TAPS_S - 1) * DISTANCE_W;
constexpr int IMAGE_PLACES = LINE_ROWS * LINE_COLUMNS;
constexpr bool IN_STRIPS = STRIPS > 0;
constexpr int TILE_ROWS = TILE_N / (IN_STRIPS ? 8 * STRIPS : 8);  // rows of a tile in strips
static_assert(!IN_STRIPS || TILE_ROWS * 8 * STRIPS == TILE_N);
// Source places from the topmost, leftmost tap of the tile's first pixel to the last tap of its
// last one.
constexpr int HALO_COLUMNS = IN_STRIPS ? 8 * STRIPS + EXTENT_W : LINE_COLUMNS;
constexpr int HALO_PIXELS =
    IN_STRIPS ? (TILE_ROWS + EXTENT_H) * HALO_COLUMNS : TILE_N + EXTENT_H * LINE_COLUMNS + EXTENT_W;
constexpr int NEXT_PIXELS = IN_STRIPS ? HALO_COLUMNS : 8;  // positions per group of 8 pixels

// Order of blocks, fastest first: blocks that share a tile, tiles of rows, groups, tiles of pixels
// (within an image: strips, then rows).
struct PixelTile : TapWindow {
  u32 group;
  int first_row;         // the tile's first row of the output
  u64 image;             // image of the tile's first place
  u32 images;            // images from there on
  u32 first;             // lines: the first place's number in its image
  int first_p, first_q;  // strips: the first pixel

  device_inline explicit PixelTile(u32 tile, const GatherParams& params)
      : first(0), first_p(0), first_q(0) {
    const u32 rest = DIVIDE(DIV_TILES_M, tile);
    first_row = static_cast<int>(tile - rest * DIV_TILES_M) * TILE_M;
    const u32 pixel_tile = DIVIDE(DIV_GROUPS, rest);
    group = rest - pixel_tile * DIV_GROUPS;
    int last_p = OUT_P[0] - 1, last_q = OUT_Q[0] - 1, live_from = 0;
    if constexpr (IN_STRIPS) {
      image = DIVIDE(DIV_IMAGE_TILES, pixel_tile);
      const u32 in_image = pixel_tile - static_cast<u32>(image) * DIV_IMAGE_TILES;
      const u32 row = DIVIDE(DIV_STRIPS, in_image);
      first_p = live_from = static_cast<int>(row) * TILE_ROWS;
      first_q = static_cast<int>(in_image - row * DIV_STRIPS) * (8 * STRIPS);
      if (first_p + TILE_ROWS - 1 < last_p) last_p = first_p + TILE_ROWS - 1;
      if (first_q + 8 * STRIPS - 1 < last_q) last_q = first_q + 8 * STRIPS - 1;
    } else {
      const u64 place = static_cast<u64>(pixel_tile) * TILE_N;
      image = DIVIDE(BLOCK_DIV_IMAGE_PLACES, place);
      first = static_cast<u32>(place - image * IMAGE_PLACES);
      const u32 last = first + TILE_N - 1;
      if (last < IMAGE_PLACES) {
        const int row = static_cast<int>(last) / LINE_COLUMNS;
        if (row < last_p) last_p = row;
        live_from = static_cast<int>(first) / LINE_COLUMNS;
      }
    }
    const u64 left = static_cast<u64>(params.images) - image;
    constexpr u32 MOST = IN_STRIPS ? 1 : TILE_N + 1;  // most images that a tile has
    images = left < MOST ? static_cast<u32>(left) : MOST;

    r = live_taps<PADDED_H>(live_from, last_p, STRIDE_H, ORIGIN_H[0], STEP_H, SOURCE_H, TAPS_R);
    s = live_taps<PADDED_W>(first_q, last_q, STRIDE_W, ORIGIN_W[0], STEP_W, SOURCE_W, TAPS_S);
    // A group of taps is whole rows of taps.
    if (TAP_GROUP > 1) s = {0, TAPS_S};
    if (TAP_GROUP > TAPS_S) r = {0, TAPS_R};
    // With several halos in flight, at least LEAST_TAPS steps must separate two of them.
    if (taps() < LEAST_TAPS) r = {0, TAPS_R}, s = {0, TAPS_S};
  }

  // Column n of the product, counted from the tile's first image.
  device_inline Pixel at(int n) const {
    if constexpr (!IN_STRIPS) return in_line(n);
    const int strip = n / (8 * TILE_ROWS), place = n - strip * (8 * TILE_ROWS);
    return {0, 0, first_p + place / 8, first_q + strip * 8 + place % 8};
  }
  device_inline bool inside(int n) const {
    const Pixel pixel = at(n);
    return static_cast<u32>(pixel.image) < images &&
           (LINE_ROWS == OUT_P[0] || pixel.p < OUT_P[0]) &&
           (LINE_COLUMNS == OUT_Q[0] || pixel.q < OUT_Q[0]);
  }

  // The source offset of place `place` of the halo, from the tile's first image; -1: outside.
  device_inline int source_offset(int place) const {
    const Pixel pixel =
        IN_STRIPS ? Pixel{0, 0, first_p + place / HALO_COLUMNS, first_q + place % HALO_COLUMNS}
                  : in_line(place);
    const int h = TOP + pixel.p, w = LEFT + pixel.q;
    const bool exists = static_cast<u32>(pixel.image) < images &&
                        static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                        static_cast<u32>(w) < static_cast<u32>(SOURCE_W);
    return exists
               ? pixel.image * static_cast<int>(SOURCE_STRIDE_N) +
                     h * static_cast<int>(SOURCE_STRIDE_H) + w * static_cast<int>(SOURCE_STRIDE_W)
               : -1;
  }

  // The number of places from a pixel's topmost, leftmost tap to a tap.
  device_inline static int tap(int r, int s) {
    return tap_place<DISTANCE_H * HALO_COLUMNS, DISTANCE_W>(r, s);
  }

 private:
  device_inline Pixel in_line(int n) const {
    const u32 index = first + static_cast<u32>(n);
    Pixel pixel;
    pixel.image = static_cast<int>(index / IMAGE_PLACES);
    const int rest = static_cast<int>(index) - pixel.image * IMAGE_PLACES;
    pixel.o = 0;
    pixel.p = rest / LINE_COLUMNS;
    pixel.q = rest - pixel.p * LINE_COLUMNS;
    return pixel;
  }
};
