// Filter gradient as an implicit matrix product. Whoever includes this has chosen the way to
// multiply: fma_multiply.cuh or mma_multiply.cuh.
//
// A thread block computes a TILE_M (filters) x TILE_N (columns: channels and taps) tile of dw. The
// reduction over all pixels of dy is long, and the tiles are few: slices of a block and blocks of a
// cluster share it, and add their parts up in a fixed order.
#pragma once

#include "conv/gemm_tile.cuh"
#include "conv/wgrad_loader.cuh"
#include "target/shared_memory.cuh"

KILN_KERNEL(wgrad_gemm, SLICES* SLICE_THREADS, MIN_BLOCKS, WgradParams, params) {
  Accumulator sums;
  compute_t* const all_stages = shared_array<compute_t, SLICES * STAGES * STAGE>(0);
  compute_t* const stages = all_stages + slice() * (STAGES * STAGE);

  const WgradTile tile(cluster_number());
  const TapBox taps = all_taps();
  ColumnLoader columns(tile.x(params), taps, tile.first_column);
  GradientLoader gradients(tile.dy(params), tile.first_filter);

  // A block's part is a run of steps, in which its slices take turns.
  const u32 pixels = static_cast<u32>(params.pixels);
  const u32 rank = cluster_rank();
  const u32 steps = (pixels + TILE_K - 1) / TILE_K;
  const int turns = static_cast<int>((cluster_share(steps) + SLICES - 1) / SLICES);
  const u32 first_step = rank * turns * SLICES + slice();
  const u64 part_end = static_cast<u64>(rank + 1) * turns * SLICES * TILE_K;
  const u32 end = part_end < pixels ? static_cast<u32>(part_end) : pixels;
  const auto load = [&](int turn, int slot) {
    const u32 step = first_step + static_cast<u32>(turn) * SLICES;
    columns.load(step, end, stages + slot * STAGE + STAGE_M);
    gradients.load(step, end, stages + slot * STAGE);
  };
  const auto store = [&](int slot) {
    columns.store(stages + slot * STAGE + STAGE_M);
    gradients.store(stages + slot * STAGE);
  };

  const Position position = thread_position(slice_thread());
  sums.start();
  run_stages(0, turns, load, store, [&](int slot, bool last) {
    sums.multiply_tile(stages + slot * STAGE, stages + slot * STAGE + STAGE_M, position, last);
  });

  reduce_and_store<EXCHANGE>(sums, all_stages, GradientStore<1>(tile, position, taps, params));
}
