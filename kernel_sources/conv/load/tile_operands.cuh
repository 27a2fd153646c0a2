// Where a tile of a gather finds its operands, and which of its steps are this block's.
#pragma once

#include "conv/geometry/gather_params.h"
#include "target/cluster.cuh"

// The tile's first image, its group's first channel.
template <class Tile>
device_inline const element_t* source_of(const Tile& tile, const GatherParams& params) {
  return static_cast<const element_t*>(params.source) +
         static_cast<i64>(tile.image) * SOURCE_STRIDE_N +
         static_cast<i64>(tile.group) * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C);
}
// Its group's first filter, the first tap.
template <class Tile>
device_inline const element_t* filter_of(const Tile& tile, const GatherParams& params) {
  return static_cast<const element_t*>(params.w) + W_FIRST[0] +
         static_cast<i64>(tile.group) * W_STRIDE_GROUP;
}

// A run of the steps that the blocks of a cluster share; the last ones' may be shorter, or empty.
struct StepShare {
  int begin, end;

  device_inline explicit StepShare(int steps) {
    const int steps_a_part = static_cast<int>(cluster_share(static_cast<u32>(steps)));
    begin = static_cast<int>(cluster_rank()) * steps_a_part;
    end = begin + steps_a_part < steps ? begin + steps_a_part : steps;
  }
};
