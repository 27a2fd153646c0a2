// Accesses to global memory in PTX, because the compiler splits some vector accesses, and does not
// always see that a pointer leads to global memory. kernel_sources/host/vector_access.cuh defines
// the same names for the host device.
#pragma once

#include "target/kernel.cuh"

// Stores COUNT (1, 2 or 4) words to global memory. `to` must be aligned to 4 * COUNT bytes.
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

// Loads COUNT (1, 2 or 4) words, which the kernel must not write, into the first elements of `to`.
// If `exist` is false, reads nothing and sets them to 0. `from` must be aligned to 4 * COUNT bytes.
// The load is predicated: with a branch, the value would be copied once more where the two sides
// join, and that copy waits for memory.
template <int COUNT, int SIZE>
device_inline void load_words(u32 (&to)[SIZE], const void* from, bool exist) {
  static_assert((COUNT == 1 || COUNT == 2 || COUNT == 4) && COUNT <= SIZE);
  const u32 predicate = exist;
  if constexpr (COUNT == 4)
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %5, 0;\n"
        "mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;\n"
        "@p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4]; }"
        : "=&r"(to[0]), "=&r"(to[1]), "=&r"(to[2]), "=&r"(to[3])
        : "l"(from), "r"(predicate));
  else if constexpr (COUNT == 2)
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %3, 0;\n"
        "mov.b32 %0, 0; mov.b32 %1, 0;\n"
        "@p ld.global.nc.v2.b32 {%0, %1}, [%2]; }"
        : "=&r"(to[0]), "=&r"(to[1])
        : "l"(from), "r"(predicate));
  else
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %2, 0;\n"
        "mov.b32 %0, 0;\n"
        "@p ld.global.nc.b32 %0, [%1]; }"
        : "=&r"(to[0])
        : "l"(from), "r"(predicate));
}

// Loads a 2-byte element, which the kernel must not write, if `active`; else leaves `bits`
// unchanged.
template <class T>
device_inline void load_short_if(bool active, u32& bits, const T* from) {
  static_assert(sizeof(T) == 2);
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %2, 0;\n"
      "@p ld.global.nc.u16 %0, [%1]; }"
      : "+r"(bits)
      : "l"(from), "r"(static_cast<u32>(active)));
}

// Loads a 2-byte element, which the kernel must not write; 0 if `exists` is false.
template <class T>
device_inline u32 load_short(const T* from, bool exists) {
  static_assert(sizeof(T) == 2);
  u32 bits;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %2, 0;\n"
      "mov.b32 %0, 0;\n"
      "@p ld.global.nc.u16 %0, [%1]; }"
      : "=&r"(bits)
      : "l"(from), "r"(static_cast<u32>(exists)));
  return bits;
}

// Packs the lower halves of two words into one word, in one instruction.
device_inline u32 pack_shorts(u32 low, u32 high) {
  u32 word;
  asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(word) : "r"(low), "r"(high));
  return word;
}
