// How many blocks of a kernel a multiprocessor holds at once.
#pragma once

#include <cstdint>

#include "device/device.hpp"

namespace kiln {

struct BlockNeeds {
  int threads = 0;
  int registers = 0;      // per thread
  int shared_memory = 0;  // static and dynamic, bytes
};

struct Occupancy {
  int blocks = 0;          // per multiprocessor
  int warps = 0;           // warps of these blocks
  int most_warps = 0;      // the most warps that a multiprocessor can hold
  const char* limit = "";  // what limits them: "registers", "shared memory", "threads", "blocks"
};

// The occupancy that the driver computes with the largest carve-out of shared memory.
Occupancy occupancy_of(const BlockNeeds& block, const DeviceDescription& device);

}  // namespace kiln
