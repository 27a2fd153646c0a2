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

}  // namespace kiln
