// Asynchronous copies of a head, on the host device: see kernel_sources/cuda/async_copy_head.cuh.
#pragma once

#include "target/async_copy.cuh"

device_inline void async_copy_head(void* shared, const void* global, u32 bytes) {
  kiln_context->async_copy(kiln_context, shared, global, 16, bytes == 16);
  for (u32 i = 0; bytes < 16 && i < bytes; i += 2)
    kiln_context->async_copy(kiln_context, static_cast<unsigned char*>(shared) + i,
                             static_cast<const unsigned char*>(global) + i, 2, true);
}
