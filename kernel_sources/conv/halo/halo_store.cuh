// Stores the accumulators of a halo tile: all together through shared memory or, where they do not
// fit, line by line.
#pragma once

#include "conv/store/line_store.cuh"
#include "conv/store/staged_store.cuh"

// memory: SHARED_BYTES, with no copy in flight.
template <bool TOGETHER, class Sums, class Tile>
device_inline void store_tile(const Sums& sums, Position position, const Tile& tile,
                              const GatherParams& params, unsigned char* memory) {
  compute_t* const sums_at = reinterpret_cast<compute_t*>(memory);
  if constexpr (TOGETHER) {
    block_barrier();  // all threads have read their stages
    stage_and_store(sums, position, tile, params, sums_at);
  } else {
    store_by_line<SHARED_BYTES / static_cast<int>(sizeof(compute_t))>(
        sums, tile, position, tile.first_row, static_cast<i64>(tile.image), tile.group, params,
        sums_at);
  }
}
