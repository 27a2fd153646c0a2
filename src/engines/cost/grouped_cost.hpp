// Estimated times of the kernels of small groups (src/engines/conv/grouped).
#pragma once

#include "device/device.hpp"

namespace kiln {

// The work of all blocks together.
struct GroupedWork {
  double wavefronts = 0;         // wavefronts of shared memory
  double products = 0;           // m16n8k16 products
  double blocks = 0, warps = 0;  // warps of a block
  double bytes = 0;              // of the operands and the result, once each
  double memory_share = 0.65;    // the largest share of memory's rate that is reached
};
double grouped_seconds(const GroupedWork& work, const DeviceDescription& device);

// The work of grouped_halo_nhwc_mma, whose blocks take tiles in turn.
struct GroupedHaloWork {
  double wavefronts = 0, products = 0;  // of a warp, in a tile
  double warps = 0, resident = 0;       // warps of a block, blocks of a multiprocessor
  double lines = 0, line_bytes = 0;     // of a tile's halo; a line is a pixel's channels
  double tiles = 0, blocks = 0;         // tiles of a block, blocks
  double bytes = 0;                     // of the operands and the result, once each
};
double grouped_halo_seconds(const GroupedHaloWork& work, const DeviceDescription& device);

}  // namespace kiln
