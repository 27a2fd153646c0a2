// Memory that L2 is to have before it is read (from sm_90 on). kernel_sources/host/prefetch.cuh
// gives the same names.
#pragma once

#include "target/kernel.cuh"

// Asks for `bytes` of global memory, and for what lies beside them in the same 16; nobody waits.
device_inline void prefetch(const void* from, u32 bytes) {
#if __CUDA_ARCH__ >= 900
  const u64 first = reinterpret_cast<u64>(from) & ~u64{15};
  const u32 whole = (static_cast<u32>(reinterpret_cast<u64>(from) - first) + bytes + 15) & ~15u;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first), "r"(whole) : "memory");
#endif
}
