// Accesses to global memory that are written out, on the host device: see
// kernel_sources/cuda/vector_access.cuh.
#pragma once

#include "target/kernel.cuh"

template <int COUNT>
device_inline void store_words(void* to, const u32 (&words)[COUNT]) {
  static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4);
  __builtin_memcpy(to, words, sizeof words);
}

template <int COUNT, int SIZE>
device_inline void load_words(u32 (&to)[SIZE], const void* from, bool exist) {
  static_assert((COUNT == 1 || COUNT == 2 || COUNT == 4) && COUNT <= SIZE);
  __builtin_memset(to, 0, 4 * COUNT);
  if (!exist) return;
  if (reinterpret_cast<u64>(from) % (4 * COUNT) != 0) __builtin_trap();
  __builtin_memcpy(to, from, 4 * COUNT);
}

template <class T>
device_inline void load_short_if(bool active, u32& bits, const T* from) {
  static_assert(sizeof(T) == 2);
  unsigned short element = 0;
  if (!active) return;
  __builtin_memcpy(&element, from, sizeof element);
  bits = element;
}

template <class T>
device_inline u32 load_short(const T* from, bool exists) {
  static_assert(sizeof(T) == 2);
  unsigned short bits = 0;
  if (exists) __builtin_memcpy(&bits, from, sizeof bits);
  return bits;
}

device_inline u32 pack_shorts(u32 low, u32 high) { return (low & 0xffffu) | high << 16; }
