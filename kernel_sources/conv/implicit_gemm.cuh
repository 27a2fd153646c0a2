// Forward convolution and data gradient as an implicit matrix product. Whoever includes this has
// chosen the way to multiply: fma_multiply.cuh or mma_multiply.cuh.
//
// A thread block computes a TILE_M (rows: filters, or channels of dx) x TILE_N (pixels) tile of the
// output. TILE_K rows of the two lowered operands at a time are gathered straight into shared
// memory, STAGES of them in flight. A cluster of blocks may share one tile: each takes a part of
// the reduction.
#pragma once

#include "conv/epilogue.cuh"
#include "conv/gather_loader.cuh"
#include "conv/gather_params.h"
#include "conv/gemm_tile.cuh"
#include "target/shared_memory.cuh"

// Where a thread's sums go: a line has a place of its own, and its elements follow at offsets that
// are the same for all lines.
struct LineStore {
  // Pixels of a run that is stored whole lie side by side: one offset is all that is needed.
  static constexpr int RUN = OUTPUT_VECTOR ? ACCESS : 1;

  Position position;
  int first_row;
  PixelOrigin origin;
  u32 last_pixel;
  out_offset_t runs[LINES_ALONG_M ? 1 : LINE / RUN];  // of pixels
  u32 valid;  // bit i: element i of a line lies in the output

  device_inline LineStore(Position at, int row, const PixelOrigin& pixels, u32 last)
      : position(at), first_row(row), origin(pixels), last_pixel(last), valid(0) {
#pragma unroll
    for (int i = 0; i < LINE; ++i) {
      const bool inside = LINES_ALONG_M ? row_of(i) < ROWS : pixel_of(i) <= last_pixel;
      valid |= static_cast<u32>(inside) << i;
    }
    if constexpr (!LINES_ALONG_M) {
#pragma unroll
      for (int i = 0; i < LINE; i += RUN) {
        const u32 pixel = pixel_of(i);
        runs[i / RUN] = output_offset(origin.decode(pixel < last_pixel ? pixel : last_pixel));
      }
    }
  }

  device_inline out_offset_t along(int i) const {
    if constexpr (LINES_ALONG_M) return static_cast<out_offset_t>(row_of(i)) * OUT_STRIDE_ROW;
    return runs[i / RUN] + i % RUN;
  }

  // Of element i of a line, or of line i.
  device_inline int row_of(int i) const { return first_row + position.m + row_step(i); }
  device_inline u32 pixel_of(int i) const { return origin.first + position.n + column_step(i); }

  device_inline out_offset_t z_offset(int row, u32 pixel, out_offset_t at) const {
    if constexpr (Z_LIKE_OUT) return at;
    return static_cast<out_offset_t>(row) * Z_STRIDE_ROW + residual_offset(origin.decode(pixel));
  }

  device_inline void store(const compute_t (&line)[LINE], int index, const Epilogue& epilogue,
                           bool aligned) const {
    out_offset_t base;
    compute_t line_bias = 0;
    if constexpr (LINES_ALONG_M) {
      if (pixel_of(index) > last_pixel) return;
      base = output_offset(origin.decode(pixel_of(index)));
    } else {
      if (row_of(index) >= ROWS) return;
      base = static_cast<out_offset_t>(row_of(index)) * OUT_STRIDE_ROW;
      line_bias = epilogue.bias_of(row_of(index));
    }
#pragma unroll
    for (int run = 0; run < LINE; run += ACCESS) {
      constexpr u32 WHOLE = (1u << ACCESS) - 1;
      compute_t bias[ACCESS];
#pragma unroll
      for (int i = 0; i < ACCESS; ++i) {
        if constexpr (LINES_ALONG_M)
          bias[i] = valid >> (run + i) & 1 ? epilogue.bias_of(row_of(run + i)) : compute_t(0);
        else
          bias[i] = line_bias;
      }
      if (OUTPUT_VECTOR && aligned && (valid >> run & WHOLE) == WHOLE) {
        compute_t values[ACCESS];
#pragma unroll
        for (int i = 0; i < ACCESS; ++i) values[i] = line[run + i];
        epilogue.store_vector(base + along(run), values, bias);
      } else {
#pragma unroll
        for (int i = 0; i < ACCESS; ++i) {
          if (!(valid >> (run + i) & 1)) continue;
          const out_offset_t at = base + along(run + i);
          const int row = LINES_ALONG_M ? row_of(run + i) : row_of(index);
          const u32 pixel = LINES_ALONG_M ? pixel_of(index) : pixel_of(run + i);
          epilogue.store_one(at, z_offset(row, pixel, at), line[run + i], bias[i]);
        }
      }
    }
  }
};

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

device_inline void store_tile(Accumulator& sums, compute_t* stages, Position position,
                              const Tile& tile, const GatherParams& params) {
  const int phase = tile.pixels.origin.phase;
  const i64 image = static_cast<i64>(tile.pixels.image);
  const i64 group_row = static_cast<i64>(tile.group) * ROWS;
  Epilogue epilogue;
  epilogue.out = static_cast<element_t*>(params.out) + image * OUT_STRIDE_N +
                 group_row * OUT_STRIDE_ROW + OUT_FIRST[phase];
  epilogue.z = static_cast<const element_t*>(params.z) + image * Z_STRIDE_N +
               group_row * Z_STRIDE_ROW + (RESIDUAL ? 0 : OUT_FIRST[phase]);
  epilogue.bias = static_cast<const element_t*>(params.bias) + group_row * BIAS_STRIDE;
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coefficient = static_cast<compute_t>(params.coefficient);
  const bool aligned = (reinterpret_cast<u64>(epilogue.out) | reinterpret_cast<u64>(epilogue.z)) %
                           (sizeof(element_t) * ACCESS) ==
                       0;
  const LineStore target(position, tile.first_row, tile.pixels.origin, tile.pixels.last);
  reduce_and_store(sums, stages, [&](const compute_t(&line)[LINE], int index) {
    target.store(line, index, epilogue, aligned);
  });
}

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
  do {
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
  } while (sums.finish(stages));

  store_tile(sums, stages, position, Tile::of_block(block_x(), params), params);
}
