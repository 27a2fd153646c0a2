// A thread's sums of products on the tensor cores, in registers that have names in PTX and that the
// compiler before it knows nothing of: it would carry each of a hundred values through every loop
// and branch, for a quarter of its time (tests/bench/NOTES.md, "Compile time").
// kernel_sources/host/sum_registers.cuh gives the same names.
//
// Products are LEFT x RIGHT, of four sums each: those of product (l, r) are s<l>_<r>_0 to _3, and
// what was promoted of them t<l>_<r>_0 to _3. A name has to stand in the text, so no loop can walk
// them: the generator writes EACH_PRODUCT(X), which is X(l, r) for each.
#pragma once

#include "target/kernel.cuh"

// TOTALS: what was promoted has registers of its own.
template <int LEFT, int RIGHT, bool TOTALS>
struct SumRegisters {
  // Once, before all else that a kernel does: PTX knows a name from where it is declared on.
  device_inline void declare() {
#define KILN_DECLARE(l, r) ".reg .f32 s" #l "_" #r "_<4>;"
    asm volatile(EACH_PRODUCT(KILN_DECLARE));
#undef KILN_DECLARE
#define KILN_DECLARE(l, r) ".reg .f32 t" #l "_" #r "_<4>;"
    if constexpr (TOTALS) asm volatile(EACH_PRODUCT(KILN_DECLARE));
#undef KILN_DECLARE
  }

  device_inline void clear() {
#define KILN_CLEAR(l, r)                                      \
  "mov.f32 s" #l "_" #r "_0, 0f00000000; mov.f32 s" #l "_" #r \
  "_1, 0f00000000;"                                           \
  "mov.f32 s" #l "_" #r "_2, 0f00000000; mov.f32 s" #l "_" #r "_3, 0f00000000;"
    asm volatile(EACH_PRODUCT(KILN_CLEAR));
#undef KILN_CLEAR
  }
  device_inline void clear_totals() {
#define KILN_CLEAR(l, r)                                      \
  "mov.f32 t" #l "_" #r "_0, 0f00000000; mov.f32 t" #l "_" #r \
  "_1, 0f00000000;"                                           \
  "mov.f32 t" #l "_" #r "_2, 0f00000000; mov.f32 t" #l "_" #r "_3, 0f00000000;"
    asm volatile(EACH_PRODUCT(KILN_CLEAR));
#undef KILN_CLEAR
  }
  device_inline void add_to_totals() {
#define KILN_ADD_ONE(l, r, c) \
  "add.f32 t" #l "_" #r "_" #c ", t" #l "_" #r "_" #c ", s" #l "_" #r "_" #c ";"
#define KILN_ADD(l, r) \
  KILN_ADD_ONE(l, r, 0) KILN_ADD_ONE(l, r, 1) KILN_ADD_ONE(l, r, 2) KILN_ADD_ONE(l, r, 3)
    asm volatile(EACH_PRODUCT(KILN_ADD));
#undef KILN_ADD
#undef KILN_ADD_ONE
  }

  // Of sums that lie in memory, LEFT x RIGHT.
  template <class Four>
  device_inline void add(const Four* held) {
#define KILN_ADD_ONE(l, r, c, at) "add.f32 s" #l "_" #r "_" #c ", s" #l "_" #r "_" #c ", " at ";"
#define KILN_ADD(l, r)                                                                          \
  {                                                                                             \
    const Four four = held[l * RIGHT + r];                                                      \
    asm volatile(KILN_ADD_ONE(l, r, 0, "%0") KILN_ADD_ONE(l, r, 1, "%1")                        \
                     KILN_ADD_ONE(l, r, 2, "%2") KILN_ADD_ONE(l, r, 3, "%3")::"f"(four.sum[0]), \
                 "f"(four.sum[1]), "f"(four.sum[2]), "f"(four.sum[3]));                         \
  }
    EACH_PRODUCT(KILN_ADD)
#undef KILN_ADD
#undef KILN_ADD_ONE
  }
#define KILN_READ(name, l, r, four)                                                      \
  asm volatile("mov.f32 %0, " name #l "_" #r "_0; mov.f32 %1, " name #l "_" #r           \
               "_1; mov.f32 %2, " name #l "_" #r "_2; mov.f32 %3, " name #l "_" #r "_3;" \
               : "=f"((four)[0]), "=f"((four)[1]), "=f"((four)[2]), "=f"((four)[3]))
  template <class Four>
  device_inline void hold(Four* held) const {
#define KILN_HOLD(l, r)             \
  {                                 \
    Four four;                      \
    KILN_READ("s", l, r, four.sum); \
    held[l * RIGHT + r] = four;     \
  }
    EACH_PRODUCT(KILN_HOLD)
#undef KILN_HOLD
  }

  // What sums are in the end goes to array[Place::of(l, r, c)].
  template <class Place>
  device_inline void read(float* array) const {
#define KILN_GET(l, r)                   \
  {                                      \
    float four[4];                       \
    if constexpr (TOTALS)                \
      KILN_READ("t", l, r, four);        \
    else                                 \
      KILN_READ("s", l, r, four);        \
    array[Place::of(l, r, 0)] = four[0]; \
    array[Place::of(l, r, 1)] = four[1]; \
    array[Place::of(l, r, 2)] = four[2]; \
    array[Place::of(l, r, 3)] = four[3]; \
  }
    EACH_PRODUCT(KILN_GET)
#undef KILN_GET
  }
#undef KILN_READ

  // The same to shared memory.
  template <class Place>
  device_inline void put(float* first) const {
    const u32 at = static_cast<u32>(__cvta_generic_to_shared(first));
#define KILN_PUT_ALL(name, l, r)                                                              \
  asm volatile("st.shared.f32 [%0+%1], " name #l "_" #r "_0; st.shared.f32 [%0+%2], " name #l \
               "_" #r "_1; st.shared.f32 [%0+%3], " name #l "_" #r                            \
               "_2; st.shared.f32 [%0+%4], " name #l "_" #r "_3;" ::"r"(at),                  \
               "n"(4 * Place::of(l, r, 0)), "n"(4 * Place::of(l, r, 1)),                      \
               "n"(4 * Place::of(l, r, 2)), "n"(4 * Place::of(l, r, 3))                       \
               : "memory");
#define KILN_PUT(l, r) KILN_PUT_ALL("s", l, r)
#define KILN_PUT_TOTAL(l, r) KILN_PUT_ALL("t", l, r)
    if constexpr (TOTALS) {
      EACH_PRODUCT(KILN_PUT_TOTAL)
    } else {
      EACH_PRODUCT(KILN_PUT)
    }
#undef KILN_PUT
#undef KILN_PUT_TOTAL
#undef KILN_PUT_ALL
  }
  // Those alone whose Place::line(l, r, c) is one of LINES from `line` on.
  template <class Place, int LINES>
  device_inline void put_lines(float* first, u32 line) const {
    const u32 at = static_cast<u32>(__cvta_generic_to_shared(first));
#define KILN_PUT_ONE(name, l, r, c)                                                 \
  asm volatile(                                                                     \
      "{.reg .pred p; .reg .u32 d; sub.u32 d, %2, %3; setp.lt.u32 p, d, %4; "       \
      "@p st.shared.f32 [%0+%1], " name #l "_" #r "_" #c ";}" ::"r"(at),            \
      "n"(4 * Place::of(l, r, c)), "n"(Place::line(l, r, c)), "r"(line), "n"(LINES) \
      : "memory");
#define KILN_PUT(l, r)       \
  KILN_PUT_ONE("s", l, r, 0) \
  KILN_PUT_ONE("s", l, r, 1) KILN_PUT_ONE("s", l, r, 2) KILN_PUT_ONE("s", l, r, 3)
#define KILN_PUT_TOTAL(l, r) \
  KILN_PUT_ONE("t", l, r, 0) \
  KILN_PUT_ONE("t", l, r, 1) KILN_PUT_ONE("t", l, r, 2) KILN_PUT_ONE("t", l, r, 3)
    if constexpr (TOTALS) {
      EACH_PRODUCT(KILN_PUT_TOTAL)
    } else {
      EACH_PRODUCT(KILN_PUT)
    }
#undef KILN_PUT
#undef KILN_PUT_TOTAL
#undef KILN_PUT_ONE
  }
};
