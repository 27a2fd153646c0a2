// Forward convolution and data gradient as an implicit matrix product. The includer has chosen how
// to multiply: fma_multiply.cuh or mma_multiply.cuh.
//
// A block computes a TILE_M (rows: filters, or channels of dx) x TILE_N (pixels) tile of the
// output. TILE_K rows of the two lowered operands at a time are gathered straight into shared
// memory, with STAGES stages in flight. The blocks of a cluster may share one tile: each takes a
// part of the reduction.
#pragma once

#include "conv/geometry/gather_params.h"
#include "conv/implicit_gemm/gather_loader.cuh"
#include "conv/load/tile_operands.cuh"
#include "conv/mma/gemm_tile.cuh"
#include "conv/store/line_store.cuh"
#include "target/shared_memory.cuh"

// The pixels of one tile.
struct TilePixels {
  PixelOrigin origin;
  u64 image;  // the image at which the block's pointers begin
  u32 last;   // index of the last pixel; less than origin.first if there is none

  device_inline TilePixels(u32 tile, const GatherParams& params) {
    origin.phase = 0;
    if constexpr (PHASES > 1) {
      u32 run = static_cast<u32>(params.tiles), before = 0;  // tiles of each phase
      if constexpr (PHASE_TILES > 0) {
        constexpr u32 FEWEST_TURNS = 4;  // with fewer turns, ends cost more than turns save
        if (run > FEWEST_TURNS * PHASE_TILES) {
          before = tile / (PHASES * PHASE_TILES) * PHASE_TILES;
          tile -= before * PHASES;
          run = run - before < PHASE_TILES ? run - before : PHASE_TILES;
        }
      }
      origin.phase = tile / run;
      tile += before - origin.phase * run;
    }
    const u64 first = static_cast<u64>(tile) * TILE_N;
    const u32 pixels = OUT_O[origin.phase] * OUT_P[origin.phase] * OUT_Q[origin.phase];
    const u64 all = static_cast<u64>(params.images) * pixels;
    origin.images = static_cast<u32>(params.images);
    origin.position = 0;
    if constexpr (IMAGES_INNER) {
      image = 0;
      const u64 of_place = static_cast<u64>(params.images) * COLUMNS_TOGETHER;
      origin.position = static_cast<u32>(first / of_place);
      origin.first = static_cast<u32>(first - origin.position * of_place);
    } else {
      // Counted from the tile's first image, pixels fit into 32 bits.
      if constexpr (FIXED)
        image = DIVIDE(BLOCK_DIV_OPQ, first);
      else
        image = first / pixels;
      origin.first = static_cast<u32>(first - image * pixels);
    }
    // A phase with fewer pixels than another has tiles that begin past its end.
    const u64 left = all > first ? all - first : 0;
    last = origin.first + static_cast<u32>(left < TILE_N ? left : TILE_N) - 1;
  }
  // What TileStore asks about a tile's pixels, by their index in the tile.
  device_inline bool inside(int n) const { return origin.first + n <= last; }
  device_inline Pixel at(int n) const {
    const u32 index = origin.first + n;
    return origin.decode(index < last ? index : last);
  }
  device_inline bool empty() const { return PHASES > 1 && last + 1 == origin.first; }
};

// Order of blocks, fastest first: blocks that share a tile, tiles of rows, groups, tiles of pixels,
// phases. If phases take turns, PHASE_TILES tiles of pixels of each phase follow each other.
struct Tile {
  u32 group;
  int first_row;
  TilePixels pixels;

  device_inline static Tile number(u32 tile, const GatherParams& params) {
    const u32 pixel_tile = DIVIDE(DIV_TILES, tile);
    const u32 group_tile = tile - pixel_tile * DIV_TILES;
    const u32 group = DIVIDE(DIV_TILES_M, group_tile);
    const int first_row = (group_tile - group * DIV_TILES_M) * TILE_M;
    return {group, first_row, TilePixels(pixel_tile, params)};
  }
};

// The loader that run_stages() expects.
struct GatherLoader {
  FilterLoader& filter;
  PixelLoader& pixels;
  const TapBox& taps;

  template <int SHARES>
  device_inline void load(int share, bool active, int k_tile, compute_t* stage) {
    pixels.load<SHARES>(share, active, k_tile, taps, stage + STAGE_M);
    filter.load<SHARES>(share, active, k_tile, taps, stage);
  }
  device_inline void store(compute_t* stage) const {
    pixels.store(stage + STAGE_M);
    filter.store(stage);
  }
};

KILN_KERNEL(implicit_gemm, SLICES* SLICE_THREADS, MIN_BLOCKS, GatherParams, params) {
  Accumulator sums;
  compute_t* const stages = shared_array<compute_t, STAGES * STAGE>(0);

  const Tile tile = Tile::number(cluster_number(), params);
  const TilePixels& pixels = tile.pixels;
  if (pixels.empty()) return;
  const int phase = pixels.origin.phase;
  const TapBox taps = taps_of_tile(pixels.origin, pixels.origin.first, pixels.last);

  const element_t* const source = static_cast<const element_t*>(params.source) +
                                  static_cast<i64>(pixels.image) * SOURCE_STRIDE_N +
                                  static_cast<i64>(tile.group) * SOURCE_STRIDE_GROUP;
  const element_t* const w = static_cast<const element_t*>(params.w) +
                             static_cast<i64>(tile.group) * W_STRIDE_GROUP + W_FIRST[phase];
  PixelLoader pixel_loader(source, pixels.origin, pixels.last);
  FilterLoader filter_loader(w, tile.first_row);

  const StepShare share((taps.reduction() + TILE_K - 1) / TILE_K);

  const Position position = thread_position(slice_thread());
  sums.start();
  GatherLoader loader{filter_loader, pixel_loader, taps};
  run_stages(share.begin, share.end, stages, loader, sums, position);

  // Computed again, because keeping it from the beginning would take registers.
  const Tile stored = Tile::number(from_here(cluster_number()), params);
  store_by_line<EXCHANGE>(sums, stored.pixels, position, stored.first_row,
                          static_cast<i64>(stored.pixels.image), stored.group, params, stages,
                          stored.pixels.origin.phase);
}
