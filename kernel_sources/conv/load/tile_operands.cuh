// The addresses of a tile's operands, and this block's share of the steps.
#pragma once

#include "conv/geometry/gather_params.h"
#include "target/cluster.cuh"

// The source at the tile's first image and its group's first channel.
template <class Tile>
device_inline const element_t* source_of(const Tile& tile, const GatherParams& params) {
  return static_cast<const element_t*>(params.source) +
         static_cast<i64>(tile.image) * SOURCE_STRIDE_N +
         static_cast<i64>(tile.group) * SOURCE_STRIDE_GROUP;
}
// The filter at its group's first row and first tap.
template <class Tile>
device_inline const element_t* filter_of(const Tile& tile, const GatherParams& params) {
  return static_cast<const element_t*>(params.w) + W_FIRST[0] +
         static_cast<i64>(tile.group) * W_STRIDE_GROUP;
}

// This block's consecutive steps of those that a cluster shares. The last blocks may have fewer
// steps, or none.
struct StepShare {
  int begin, end;

  device_inline explicit StepShare(int steps) {
    const int steps_a_part = static_cast<int>(cluster_share(static_cast<u32>(steps)));
    begin = static_cast<int>(cluster_rank()) * steps_a_part;
    end = begin + steps_a_part < steps ? begin + steps_a_part : steps;
  }
};
