// How blocks add up their partial sums of a tile of a filter gradient: the blocks of a cluster
// through shared memory, groups of clusters (PARTIAL) through the workspace.
#pragma once

#include "conv/geometry/depthwise_wgrad_tile.cuh"
#include "target/cluster.cuh"
#include "target/shared_memory.cuh"

// The block's tile, and its share of the units.
struct TileShare {
  u32 tile, group;
  u64 first, end;
};

device_inline TileShare share_of(const DepthwiseWgradParams& params) {
  TileShare share;
  share.tile = cluster_number() % TILES;
  share.group = PARTIAL ? cluster_number() / TILES : 0;
  const u64 parts = static_cast<u64>(cluster_size()) * (PARTIAL ? params.groups : 1);
  const u64 part = static_cast<u64>(share.group) * cluster_size() + cluster_rank();
  const u64 units = static_cast<u64>(params.units);
  share.first = part * units / parts, share.end = (part + 1) * units / parts;
  return share;
}

// Adds up the sums `own` of the cluster's blocks in the order of their ranks, and stores the
// totals.
template <int THREADS>
device_inline void finish_tile(const DepthwiseWgradParams& params, const TileShare& share,
                               const DepthwiseTile& tile, compute_t* own) {
  const int size = static_cast<int>(cluster_size());
  if (size > 1)
    cluster_barrier();
  else
    block_barrier();
#pragma unroll 1
  for (int element = static_cast<int>(cluster_rank() * THREADS + thread_x());
       element < TILE_ELEMENTS; element += size * THREADS) {
    compute_t total = 0;
#pragma unroll 4
    for (int rank = 0; rank < size; ++rank)
      total += cluster_shared(own, static_cast<u32>(rank))[element];
    if constexpr (PARTIAL)
      partials_of(params, share.group, share.tile)[element] = total;
    else
      store_element(params, tile, element, total);
  }
  if (size > 1) cluster_barrier();  // other blocks read this block's shared memory until here
}
