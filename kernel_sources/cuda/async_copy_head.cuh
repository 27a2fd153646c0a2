// Asynchronous copies that fill up what they do not read with zeros (cp.async, sm_80 and later).
// kernel_sources/host/async_copy_head.cuh defines the same name for the host device.
#pragma once

#include "target/async_copy.cuh"

// Starts a copy of 16 bytes of which only the first `bytes` (0 to 16) are read; the rest becomes
// zero. Both addresses must be aligned to 16. The copy belongs to a group as that of async_copy()
// does.
device_inline void async_copy_head(void* shared, const void* global, u32 bytes) {
#if __CUDA_ARCH__ >= 800
  const u32 destination = static_cast<u32>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(destination),
               "l"(global), "r"(bytes)
               : "memory");
#else
  for (u32 i = 0; i < 16; i += 2)
    *reinterpret_cast<unsigned short*>(static_cast<unsigned char*>(shared) + i) =
        i < bytes ? *reinterpret_cast<const unsigned short*>(
                        static_cast<const unsigned char*>(global) + i)
                  : static_cast<unsigned short>(0);
#endif
}
