// Forward convolution and data gradient as an implicit matrix product. Whoever includes this has
// chosen the way to multiply: fma_multiply.cuh or mma_multiply.cuh.
//
// A thread block computes a TILE_M (rows: filters, or channels of dx) x TILE_N (pixels) tile of the
// output. TILE_K rows of the two lowered operands at a time are gathered straight into shared
// memory, STAGES of them in flight. A cluster of blocks may share one tile: each takes a part of
// the reduction.
#pragma once

#include "conv/gather_loader.cuh"
#include "conv/gather_params.h"
#include "conv/gemm_tile.cuh"
#include "conv/line_store.cuh"
#include "target/shared_memory.cuh"

// The pixels of one tile.
struct TilePixels {
  PixelOrigin origin;
  u64 image;  // that the block's pointers begin with
  u32 last;   // index of the last pixel; less than origin.first if there is none

  device_inline TilePixels(u64 tile, const GatherParams& params) {
    origin.phase = 0;
    if constexpr (PHASES > 1) {
      origin.phase = static_cast<u32>(tile / params.tiles);
      tile -= origin.phase * params.tiles;
    }
    const u64 first = tile * TILE_N;
    const u32 pixels = OUT_O[origin.phase] * OUT_P[origin.phase] * OUT_Q[origin.phase];
    const u64 all = static_cast<u64>(params.images) * pixels;
    origin.images = static_cast<u32>(params.images);
    origin.position = 0;
    if constexpr (IMAGES_INNER) {
      image = 0;
      origin.position = static_cast<u32>(first / origin.images);
      origin.first = static_cast<u32>(first - static_cast<u64>(origin.position) * origin.images);
    } else {
      // From the first image of the tile on, 32 bits are enough to count pixels.
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
  // What TileStore asks of a tile's pixels, by their place in the tile.
  device_inline bool inside(int n) const { return origin.first + n <= last; }
  device_inline Pixel at(int n) const {
    const u32 index = origin.first + n;
    return origin.decode(index < last ? index : last);
  }
  device_inline bool empty() const { return PHASES > 1 && last + 1 == origin.first; }
};

// Blocks in order: parts of the reduction, tiles of rows, groups, tiles of pixels, phases.
struct Tile {
  u32 group;
  int first_row;
  TilePixels pixels;

  device_inline static Tile of_block(u32 block, const GatherParams& params) {
    const u32 tile = block / cluster_size();
    const u32 pixel_tile = DIVIDE(DIV_TILES, tile);
    const u32 group_tile = tile - pixel_tile * DIV_TILES;
    const u32 group = DIVIDE(DIV_TILES_M, group_tile);
    const int first_row = (group_tile - group * DIV_TILES_M) * TILE_M;
    return {group, first_row, TilePixels(pixel_tile, params)};
  }
};

KILN_KERNEL(implicit_gemm, SLICES* SLICE_THREADS, MIN_BLOCKS, GatherParams, params) {
  compute_t* const stages = shared_array<compute_t, STAGES * STAGE>(0);

  const Tile tile = Tile::of_block(block_x(), params);
  const TilePixels& pixels = tile.pixels;
  if (pixels.empty()) return;
  const int phase = pixels.origin.phase;
  const TapBox taps = taps_of_tile(pixels.origin, pixels.origin.first, pixels.last);

  const element_t* const source =
      static_cast<const element_t*>(params.source) +
      static_cast<i64>(pixels.image) * SOURCE_STRIDE_N +
      static_cast<i64>(tile.group) * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C);
  const element_t* const w = static_cast<const element_t*>(params.w) +
                             static_cast<i64>(tile.group) * W_STRIDE_GROUP + W_FIRST[phase];
  PixelLoader pixel_loader(source, pixels.origin, pixels.last);
  FilterLoader filter_loader(w, tile.first_row);

  const u32 parts = cluster_size();
  const int k_tiles = (taps.reduction() + TILE_K - 1) / TILE_K;
  const int k_tiles_per_part = (k_tiles + parts - 1) / parts;
  const int k_begin = cluster_rank() * k_tiles_per_part;
  const int k_end = k_begin + k_tiles_per_part < k_tiles ? k_begin + k_tiles_per_part : k_tiles;

  constexpr int AHEAD = STAGES - 1;  // tiles in flight
  const Position position = thread_position(slice_thread());
  Accumulator sums;
#pragma unroll 1
  for (int i = 0; i < AHEAD; ++i) {
    if (k_begin + i < k_end) {
      pixel_loader.load(k_begin + i, taps, stages + i * STAGE + STAGE_M);
      filter_loader.load(k_begin + i, taps, stages + i * STAGE);
      pixel_loader.store(stages + i * STAGE + STAGE_M);
      filter_loader.store(stages + i * STAGE);
    }
    async_commit();
  }

  int slot = 0;
#pragma unroll 1
  for (int k_tile = k_begin; k_tile < k_end; ++k_tile) {
    async_wait<AHEAD - 1>();
    block_barrier();  // tile k_tile has landed for all; the slot read last turn is free for all
    const bool more = k_tile + AHEAD < k_end;
    if (more) {
      pixel_loader.load(k_tile + AHEAD, taps, stages + last_slot(slot) * STAGE + STAGE_M);
      filter_loader.load(k_tile + AHEAD, taps, stages + last_slot(slot) * STAGE);
    }
    async_commit();
    sums.multiply_tile(stages + slot * STAGE, stages + slot * STAGE + STAGE_M, position);
    if (more) {
      pixel_loader.store(stages + last_slot(slot) * STAGE + STAGE_M);
      filter_loader.store(stages + last_slot(slot) * STAGE);
    }
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }
  sums.finish();

  // Worked out again: kept from the beginning on, its parts would take registers.
  const Tile stored = Tile::of_block(from_here(block_x()), params);
  const TileStore store(stored.pixels, position, stored.first_row,
                        static_cast<i64>(stored.pixels.image), stored.group, params,
                        stored.pixels.origin.phase);
  reduce_and_store<EXCHANGE>(sums, stages, store);
}
