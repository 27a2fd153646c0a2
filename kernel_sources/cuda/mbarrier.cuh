// Barriers in shared memory that count arrivals of threads and bytes of TMA copies (mbarrier, sm_90
// and later). kernel_sources/host/mbarrier.cuh defines the same names for the host device.
//
// A barrier goes through phases, numbered from 0. A phase completes when as many threads have
// arrived as init() was told and all announced bytes have landed. wait(parity) returns once the
// phase of that parity has completed; on a fresh barrier, a wait for parity 1 returns at once.
#pragma once

#include "target/kernel.cuh"

struct Mbarrier {
  u64 state;

  // One thread calls this before any other use, then mbarriers_are_made(); a block barrier follows.
  device_inline void init(u32 arrivals) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(place()), "r"(arrivals)
                 : "memory");
#endif
  }
  device_inline void arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(place()) : "memory");
#endif
  }
  // Arrives, and announces that copies with this barrier will bring `bytes` bytes.
  device_inline void arrive_and_expect(u32 bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place()), "r"(bytes)
                 : "memory");
#endif
  }
  device_inline void wait(u32 parity) {
#if __CUDA_ARCH__ >= 900
    u32 passed;
    do {
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
          "selp.u32 %0, 1, 0, p;}"
          : "=r"(passed)
          : "r"(place()), "r"(parity)
          : "memory");
    } while (passed == 0);
#endif
  }

  device_inline u32 place() const { return static_cast<u32>(__cvta_generic_to_shared(this)); }
};

// Makes this thread's mbarrier initializations visible to TMA.
device_inline void mbarriers_are_made() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
