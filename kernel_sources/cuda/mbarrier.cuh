// Barriers in shared memory that count arrivals of threads and bytes of bulk copies (sm_90 and up).
// kernel_sources/host/mbarrier.cuh gives the same names.
//
// A barrier goes through phases, numbered from 0. A phase ends when as many threads as init() was
// told have arrived and as many bytes have landed as they announced. wait(parity) returns when the
// phase of that parity has ended: a fresh barrier lets a wait for parity 1 pass at once.
#pragma once

#include "target/kernel.cuh"

struct Mbarrier {
  u64 state;

  // By one thread, before any other use; then mbarriers_are_made() and a barrier of the block.
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
  // Arrives, and announces `bytes` of copies that name this barrier.
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

// Shows barriers that this thread has made to the copy engine.
device_inline void mbarriers_are_made() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
