// Accesses to global memory that are written out, on the host device: see
// kernel_sources/cuda/vector_access.cuh.
#pragma once

#include "target/kernel.cuh"

template <int COUNT>
device_inline void store_words(void* to, const u32 (&words)[COUNT]) {
  static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4);
  __builtin_memcpy(to, words, sizeof words);
}

template <class T>
device_inline u32 load_short(const T* from) {
  static_assert(sizeof(T) == 2);
  unsigned short bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return bits;
}
