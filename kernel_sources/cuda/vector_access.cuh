// Accesses to global memory that are written out, because the compiler splits some of them, and
// does not always see where a pointer leads. kernel_sources/host/vector_access.cuh gives the same
// names.
#pragma once

#include "target/kernel.cuh"

// COUNT (1, 2 or 4) words to global memory, aligned to their size together.
template <int COUNT>
device_inline void store_words(void* to, const u32 (&words)[COUNT]) {
  static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4);
  if constexpr (COUNT == 4)
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
  else if constexpr (COUNT == 2)
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words[0]), "r"(words[1])
                 : "memory");
  else
    *static_cast<u32*>(to) = words[0];
}

// An element of 2 bytes, which the kernel does not write.
template <class T>
device_inline u32 load_short(const T* from) {
  static_assert(sizeof(T) == 2);
  unsigned short bits;
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(bits) : "l"(from));
  return bits;
}
