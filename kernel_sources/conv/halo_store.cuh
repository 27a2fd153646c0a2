// The sums of a halo tile on their way out: all together through shared memory or, where that has
// no room for them, line by line.
#pragma once

#include "conv/line_store.cuh"
#include "conv/staged_store.cuh"

// memory: SHARED_BYTES, to which no copy is on its way any more.
template <bool TOGETHER, class Sums, class Tile>
device_inline void store_tile(const Sums& sums, Position position, const Tile& tile,
                              const GatherParams& params, byte_t* memory) {
  compute_t* const sums_at = reinterpret_cast<compute_t*>(memory);
  block_barrier();  // no thread reads its stages any more
  if constexpr (TOGETHER) {
    stage_and_store(sums, position, tile, params, sums_at);
  } else {
    const PlacesInShared places{reinterpret_cast<out_offset_t*>(memory)};
    if (!LINES_ALONG_M) {
      places.put(tile);
      block_barrier();
    }
    const TileStore store(tile, places, position, tile.first_row, static_cast<i64>(tile.image),
                          tile.group, params);
    reduce_and_store<SHARED_BYTES / static_cast<int>(sizeof(compute_t))>(sums, sums_at, store);
  }
}
