// How long the kernels of small groups take (src/engines/conv/grouped), told before they exist.
#pragma once

#include "device/device.hpp"

namespace kiln {

// What all blocks together ask of the multiprocessors.
struct GroupedWork {
  double wavefronts = 0;         // of shared memory
  double products = 0;           // of 16 x 8 x 16, each by a warp
  double blocks = 0, warps = 0;  // warps of a block
  double bytes = 0;              // of the operands and the result, once each
  double memory_share = 0.65;    // of memory's rate that is reached at most
};
double grouped_seconds(const GroupedWork& work, const DeviceDescription& device);

}  // namespace kiln
