// The sums of a halo tile on their way out: all together through shared memory or, where that has
// no room for them, line by line.
#pragma once

#include "conv/store/line_store.cuh"
#include "conv/store/staged_store.cuh"

// memory: SHARED_BYTES, to which no copy is on its way any more.
template <bool TOGETHER, class Sums, class Tile>
device_inline void store_tile(const Sums& sums, Position position, const Tile& tile,
                              const GatherParams& params, byte_t* memory) {
  compute_t* const sums_at = reinterpret_cast<compute_t*>(memory);
  if constexpr (TOGETHER) {
    block_barrier();  // no thread reads its stages any more
    stage_and_store(sums, position, tile, params, sums_at);
  } else {
    store_by_line<SHARED_BYTES / static_cast<int>(sizeof(compute_t))>(
        sums, tile, position, tile.first_row, static_cast<i64>(tile.image), tile.group, params,
        sums_at);
  }
}
