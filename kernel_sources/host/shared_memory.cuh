// The block's dynamic shared memory, on the host device: see kernel_sources/cuda/shared_memory.cuh.
#pragma once

#include "target/kernel.cuh"

// Each array has memory of exactly its size, so that AddressSanitizer detects an overrun into the
// next one. It holds 0xff bytes (not a number) until written. A launch fails if one offset is
// requested with two sizes, if arrays overlap, or if an array ends past the launch's shared memory.
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
