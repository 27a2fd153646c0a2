// Asynchronous copies, on the host device: see kernel_sources/cuda/async_copy.cuh.
#pragma once

#include "target/kernel.cuh"

// The destination becomes 0xff bytes (not a number) at once, and holds the source's bytes only
// after the issuing thread has waited for the copy's group. So a missing commit or wait gives a
// wrong result.
template <int BYTES, bool IN_L1 = (BYTES < 16)>
device_inline void async_copy(void* shared, const void* global, bool valid) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16);
  static_assert(IN_L1 || BYTES == 16);
  kiln_context->async_copy(kiln_context, shared, global, BYTES, valid);
}

template <int BYTES>
device_inline void async_copy_if(bool active, void* shared, const void* global, bool valid) {
  if (active) async_copy<BYTES>(shared, global, valid);
}

device_inline void async_commit() { kiln_context->async_commit(kiln_context); }

template <int N>
device_inline void async_wait() {
  static_assert(N >= 0);
  kiln_context->async_wait(kiln_context, N);
}
