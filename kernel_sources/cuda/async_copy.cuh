// Asynchronous copies from global to shared memory (cp.async, from sm_80 on).
// kernel_sources/host/async_copy.cuh gives the same names.
#pragma once

#include "target/kernel.cuh"

// Starts a copy of BYTES (4, 8 or 16) bytes; both addresses are aligned to BYTES. Where !valid,
// zeros are written and `global` is not read. The destination holds the bytes only after the
// issuing thread has committed and waited for the copy's group; before sm_80, at once.
//
// IN_L1: by way of the L1 cache, as fewer than 16 bytes always come. Past it L2 is asked for each
// run of copies that lie side by side in both memories, and gives whole sectors of 32 bytes: so
// copies that are scattered in shared memory, or that the block repeats, come through L1.
// Of 16 bytes, L2 fetches the 128 around them from memory: what lies beside a few channels of a
// pixel is the next step's.
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

// The same where `active`, and nothing elsewhere: predicated, for a branch would keep instructions
// on its two sides from overlapping.
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

// Closes this thread's group of copies: all it has issued since the last commit, even if none.
device_inline void async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all but the newest N groups of this thread have landed. Other threads may read them
// after a barrier that follows.
template <int N>
device_inline void async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
