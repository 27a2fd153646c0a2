// Filter gradient as an implicit matrix product. Include fma_multiply.cuh or mma_multiply.cuh
// before.
//
// A thread block computes a TILE_M (filters) x TILE_N (columns: channels and taps) tile of dw. The
// reduction over all pixels of dy is long and tiles are few, so slices of a block and blocks of a
// cluster share the reduction and add up their sums in a fixed order.
#pragma once

#include "conv/mma/gemm_tile.cuh"
#include "conv/wgrad/implicit_gemm_loader.cuh"
#include "target/shared_memory.cuh"

// The loader in the form that run_stages() takes.
struct WgradLoader {
  GradientLoader& gradients;
  ColumnLoader& columns;
  u32 first_step, end;  // first step of the slice; end of the part's pixels

  template <int SHARES>
  device_inline void load(int share, bool active, int turn, compute_t* stage) {
    const u32 step = first_step + static_cast<u32>(turn) * SLICES;
    columns.load<SHARES>(share, active, step, end, stage + STAGE_M);
    gradients.load<SHARES>(share, active, step, end, stage);
  }
  device_inline void store(compute_t* stage) const {
    columns.store(stage + STAGE_M);
    gradients.store(stage);
  }
};

KILN_KERNEL(wgrad_implicit_gemm, SLICES* SLICE_THREADS, MIN_BLOCKS, WgradParams, params) {
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
  WgradLoader loader{gradients, columns, first_step, end};

  const Position position = thread_position(slice_thread());
  sums.start();
  run_stages(0, turns, stages, loader, sums, position);

  reduce_and_store<EXCHANGE>(sums, all_stages, GradientStore<1>(tile, position, taps, params));
}
