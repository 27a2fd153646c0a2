// Asynchronous copies from global to shared memory (cp.async, sm_80 and later).
// kernel_sources/host/async_copy.cuh defines the same names for the host device.
#pragma once

#include "target/kernel.cuh"

// Starts a copy of BYTES (4, 8 or 16) bytes; both addresses must be aligned to BYTES. If `valid` is
// false, the copy writes zeros and does not read `global`. The data is in shared memory once the
// issuing thread has committed the copy's group and waited for it; before sm_80 the copy is
// synchronous.
//
// IN_L1 sends the copy through the L1 cache, as the hardware always does for fewer than 16 bytes. A
// copy that bypasses L1 asks L2 for whole 32-byte sectors, and lanes share a request only where
// their copies are contiguous in both memories. So copies that scatter in shared memory, or whose
// data the block reads again, go through L1. For 16-byte copies, L2 prefetches the surrounding 128
// bytes: the bytes next to a few channels of a pixel are what the next step reads.
template <int BYTES, bool IN_L1 = (BYTES < 16)>
device_inline void async_copy(void* shared, const void* global, bool valid) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16);
  static_assert(IN_L1 || BYTES == 16);
#if __CUDA_ARCH__ >= 800
  const u32 destination = static_cast<u32>(__cvta_generic_to_shared(shared));
  const u32 source_bytes = valid ? BYTES : 0;  // the rest of BYTES is filled with zeros
  if constexpr (!IN_L1) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(destination),
                 "l"(global), "r"(source_bytes)
                 : "memory");
  } else if constexpr (BYTES == 16) {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(destination),
                 "l"(global), "r"(source_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(destination), "l"(global),
                 "n"(BYTES), "r"(source_bytes)
                 : "memory");
  }
#else
  if constexpr (BYTES == 16) {
    *static_cast<uint4*>(shared) = valid ? *static_cast<const uint4*>(global) : uint4{};
  } else if constexpr (BYTES == 8) {
    *static_cast<u64*>(shared) = valid ? *static_cast<const u64*>(global) : 0;
  } else {
    *static_cast<u32*>(shared) = valid ? *static_cast<const u32*>(global) : 0;
  }
#endif
}

// Like async_copy(), but does nothing unless `active`. The instruction is predicated, because a
// branch would keep the instructions before and after it from overlapping.
template <int BYTES>
device_inline void async_copy_if(bool active, void* shared, const void* global, bool valid) {
#if __CUDA_ARCH__ >= 800
  const u32 destination = static_cast<u32>(__cvta_generic_to_shared(shared));
  const u32 source_bytes = valid ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %3, 0;\n"
        "@p cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2; }" ::"r"(destination),
        "l"(global), "r"(source_bytes), "r"(static_cast<u32>(active))
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %4, 0;\n"
        "@p cp.async.ca.shared.global [%0], [%1], %2, %3; }" ::"r"(destination),
        "l"(global), "n"(BYTES), "r"(source_bytes), "r"(static_cast<u32>(active))
        : "memory");
  }
#else
  if (active) async_copy<BYTES>(shared, global, valid);
#endif
}

// Closes this thread's current group, which holds all copies issued since the last commit and may
// be empty.
device_inline void async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all but the newest N groups of this thread have landed. Other threads may read the
// data after a barrier that follows.
template <int N>
device_inline void async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
