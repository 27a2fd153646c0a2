// A halo tile's sums on their way out.
#pragma once

#include "conv/fragments.cuh"
#include "conv/halo_tile.cuh"
#include "conv/line_store.cuh"

// memory: shared, for ELEMENTS values.
template <int ELEMENTS>
device_inline void store_tile(Sums& sums, byte_t* memory, const HaloTile& tile,
                              const Position& position, const GatherParams& params) {
  const Epilogue epilogue =
      epilogue_at(params, static_cast<i64>(tile.image), static_cast<i64>(tile.group) * ROWS, 0);
  const bool aligned = (reinterpret_cast<u64>(epilogue.out) | reinterpret_cast<u64>(epilogue.z)) %
                           (sizeof(element_t) * ACCESS) ==
                       0;
  const LineStore target(position, tile.first_row, tile);
  block_barrier();
  reduce_and_store<ELEMENTS>(sums, reinterpret_cast<compute_t*>(memory),
                             [&](const compute_t(&line)[LINE], int index) {
                               target.store(line, index, epilogue, aligned);
                             });
}
