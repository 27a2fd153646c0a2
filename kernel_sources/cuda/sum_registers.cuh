// A thread's sums of products on the tensor cores, in registers that have names in PTX and that the
// compiler before it knows nothing of: it would carry each of a hundred values through every loop
// and branch, for up to a quarter of its time (tests/bench/NOTES.md, "Compile time").
// kernel_sources/host/sum_registers.cuh gives the same names.
//
// Products are LEFT x RIGHT, of four sums each: those of product (l, r) are s<l>_<r>_0 to _3, and
// what was promoted of them t<l>_<r>_0 to _3. A name has to stand in the text, so no loop can walk
// them: the generator writes EACH_PRODUCT(X, sums), which is X(sums, l, r) for each; sums: "s",
// "t".
#pragma once

#include "target/kernel.cuh"

#define KILN_SUM(sums, l, r, c) sums #l "_" #r "_" #c
#define KILN_EACH_SUM(X, sums, l, r) \
  X(KILN_SUM(sums, l, r, 0))         \
  X(KILN_SUM(sums, l, r, 1)) X(KILN_SUM(sums, l, r, 2)) X(KILN_SUM(sums, l, r, 3))

// TOTALS: what was promoted has registers of its own.
template <int LEFT, int RIGHT, bool TOTALS>
struct SumRegisters {
  // Once, before all else that a kernel does: PTX knows a name from where it is declared on.
  device_inline void declare() {
#define KILN_DECLARE(sums, l, r) ".reg .f32 " sums #l "_" #r "_<4>;"
    asm volatile(EACH_PRODUCT(KILN_DECLARE, "s"));
    if constexpr (TOTALS) asm volatile(EACH_PRODUCT(KILN_DECLARE, "t"));
#undef KILN_DECLARE
  }

#define KILN_CLEAR_ONE(name) "mov.f32 " name ", 0f00000000;"
#define KILN_CLEAR(sums, l, r) KILN_EACH_SUM(KILN_CLEAR_ONE, sums, l, r)
  device_inline void clear() { asm volatile(EACH_PRODUCT(KILN_CLEAR, "s")); }
  device_inline void clear_totals() { asm volatile(EACH_PRODUCT(KILN_CLEAR, "t")); }
#undef KILN_CLEAR
#undef KILN_CLEAR_ONE

  device_inline void add_to_totals() {
#define KILN_ADD_ONE(l, r, c) \
  "add.f32 " KILN_SUM("t", l, r, c) ", " KILN_SUM("t", l, r, c) ", " KILN_SUM("s", l, r, c) ";"
#define KILN_ADD(sums, l, r) \
  KILN_ADD_ONE(l, r, 0) KILN_ADD_ONE(l, r, 1) KILN_ADD_ONE(l, r, 2) KILN_ADD_ONE(l, r, 3)
    asm volatile(EACH_PRODUCT(KILN_ADD, "s"));
#undef KILN_ADD
#undef KILN_ADD_ONE
  }

  // Of sums that lie in memory, LEFT x RIGHT.
  template <class Four>
  device_inline void add(const Four* held) {
#define KILN_ADD_ONE(name, at) "add.f32 " name ", " name ", " at ";"
#define KILN_ADD(sums, l, r)                                                                    \
  {                                                                                             \
    const Four four = held[l * RIGHT + r];                                                      \
    asm volatile(KILN_ADD_ONE(KILN_SUM(sums, l, r, 0), "%0") KILN_ADD_ONE(                      \
                     KILN_SUM(sums, l, r, 1), "%1") KILN_ADD_ONE(KILN_SUM(sums, l, r, 2), "%2") \
                     KILN_ADD_ONE(KILN_SUM(sums, l, r, 3), "%3")::"f"(four.sum[0]),             \
                 "f"(four.sum[1]), "f"(four.sum[2]), "f"(four.sum[3]));                         \
  }
    EACH_PRODUCT(KILN_ADD, "s")
#undef KILN_ADD
#undef KILN_ADD_ONE
  }
#define KILN_MOVE(to, sums, l, r, c) "mov.f32 " to ", " KILN_SUM(sums, l, r, c) ";"
#define KILN_READ(sums, l, r, four)                                              \
  asm volatile(KILN_MOVE("%0", sums, l, r, 0) KILN_MOVE("%1", sums, l, r, 1)     \
                   KILN_MOVE("%2", sums, l, r, 2) KILN_MOVE("%3", sums, l, r, 3) \
               : "=f"((four)[0]), "=f"((four)[1]), "=f"((four)[2]), "=f"((four)[3]))
  template <class Four>
  device_inline void hold(Four* held) const {
#define KILN_HOLD(sums, l, r)        \
  {                                  \
    Four four;                       \
    KILN_READ(sums, l, r, four.sum); \
    held[l * RIGHT + r] = four;      \
  }
    EACH_PRODUCT(KILN_HOLD, "s")
#undef KILN_HOLD
  }

  // What sums are in the end goes to array[Place::of(l, r, c)].
  template <class Place>
  device_inline void read(float* array) const {
#define KILN_GET(sums, l, r)             \
  {                                      \
    float four[4];                       \
    KILN_READ(sums, l, r, four);         \
    array[Place::of(l, r, 0)] = four[0]; \
    array[Place::of(l, r, 1)] = four[1]; \
    array[Place::of(l, r, 2)] = four[2]; \
    array[Place::of(l, r, 3)] = four[3]; \
  }
    if constexpr (TOTALS) {
      EACH_PRODUCT(KILN_GET, "t")
    } else {
      EACH_PRODUCT(KILN_GET, "s")
    }
#undef KILN_GET
  }
#undef KILN_READ
#undef KILN_MOVE

  // The same to shared memory.
  template <class Place>
  device_inline void put(float* first) const {
    const u32 at = static_cast<u32>(__cvta_generic_to_shared(first));
#define KILN_STORE(at, sums, l, r, c) "st.shared.f32 [%0+" at "], " KILN_SUM(sums, l, r, c) ";"
#define KILN_PUT(sums, l, r)                                                                 \
  asm volatile(KILN_STORE("%1", sums, l, r, 0) KILN_STORE("%2", sums, l, r, 1)               \
                   KILN_STORE("%3", sums, l, r, 2) KILN_STORE("%4", sums, l, r, 3)::"r"(at), \
               "n"(4 * Place::of(l, r, 0)), "n"(4 * Place::of(l, r, 1)),                     \
               "n"(4 * Place::of(l, r, 2)), "n"(4 * Place::of(l, r, 3))                      \
               : "memory");
    if constexpr (TOTALS) {
      EACH_PRODUCT(KILN_PUT, "t")
    } else {
      EACH_PRODUCT(KILN_PUT, "s")
    }
#undef KILN_PUT
#undef KILN_STORE
  }
  // Those alone whose Place::line(l, r, c) is one of LINES from `line` on.
  template <class Place, int LINES>
  device_inline void put_lines(float* first, u32 line) const {
    const u32 at = static_cast<u32>(__cvta_generic_to_shared(first));
#define KILN_PUT_ONE(sums, l, r, c)                                                 \
  asm volatile(                                                                     \
      "{.reg .pred p; .reg .u32 d; sub.u32 d, %2, %3; setp.lt.u32 p, d, %4; "       \
      "@p st.shared.f32 [%0+%1], " KILN_SUM(sums, l, r, c) ";}" ::"r"(at),          \
      "n"(4 * Place::of(l, r, c)), "n"(Place::line(l, r, c)), "r"(line), "n"(LINES) \
      : "memory");
#define KILN_PUT(sums, l, r)  \
  KILN_PUT_ONE(sums, l, r, 0) \
  KILN_PUT_ONE(sums, l, r, 1) KILN_PUT_ONE(sums, l, r, 2) KILN_PUT_ONE(sums, l, r, 3)
    if constexpr (TOTALS) {
      EACH_PRODUCT(KILN_PUT, "t")
    } else {
      EACH_PRODUCT(KILN_PUT, "s")
    }
#undef KILN_PUT
#undef KILN_PUT_ONE
  }
};

#undef KILN_EACH_SUM
#undef KILN_SUM
