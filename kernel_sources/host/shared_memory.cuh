// The block's dynamic shared memory, on the host device: see kernel_sources/cuda/shared_memory.cuh.
#pragma once

#include "target/kernel.cuh"

// Each array has memory of its own, of exactly its size, so that AddressSanitizer sees an overrun
// into the next one. It holds 0xff bytes (not a number) until written. An offset asked for with two
// sizes, arrays that overlap, and an array past the launch's shared memory fail the launch.
template <class T, int COUNT>
device_inline T* shared_array(u32 offset) {
  static_assert(COUNT > 0 && alignof(T) <= 16);
  return static_cast<T*>(
      kiln_context->shared_array(kiln_context, offset, static_cast<u32>(COUNT * sizeof(T))));
}

template <class T>
device_inline const T* kept_shared(const T* place) {
  return place;
}
