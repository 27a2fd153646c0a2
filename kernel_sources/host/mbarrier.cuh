// Barriers in shared memory on the host device: see kernel_sources/cuda/mbarrier.cuh. The runtime
// keeps their state. A launch fails if too many threads arrive or more bytes land than were
// announced.
#pragma once

#include "target/kernel.cuh"

struct Mbarrier {
  u64 state;

  device_inline void init(u32 arrivals) {
    kiln_context->mbarrier_init(kiln_context, this, arrivals);
  }
  device_inline void arrive() { kiln_context->mbarrier_arrive(kiln_context, this, 0); }
  device_inline void arrive_and_expect(u32 bytes) {
    kiln_context->mbarrier_arrive(kiln_context, this, bytes);
  }
  device_inline void wait(u32 parity) { kiln_context->mbarrier_wait(kiln_context, this, parity); }
};

device_inline void mbarriers_are_made() {}
