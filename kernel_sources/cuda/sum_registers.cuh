// A thread's sums of products, in registers that have names in PTX and that the compiler before it
// knows nothing of: it would carry each of a hundred values through every loop and branch, for up
// to half of its time (src/compile/README.md). kernel_sources/host/sum_registers.cuh gives the same
// names.
//
// Products are LEFT x RIGHT, of four sums each: those of product (l, r) are s<l>_<r>_0 to _3, and
// what was promoted of them t<l>_<r>_0 to _3. A name has to stand in the text, so no loop can walk
// them: the generator writes EACH_PRODUCT(X, sums), which is X(sums, l, r) for each; EACH_RIGHT(X),
// which is X(r) for each right operand; STORED_SUMS, which of "s" and "t" the sums are in the end;
// and SUM_TYPE, what PTX calls their type. Wherever it can be, what is done with all of them is one
// statement, or four, one for each c, of which the compiler sees nothing but the operands.
//
// A Place says where sum c of product (l, r) goes: to Place::of(l, r, c), of line Place::line(l, r,
// c), both sums of a step for c, for the run of Place::LEFT_RUN left operands that l is in and the
// place of l there, and for the run of Place::RUN right operands that r is in and its place there.
#pragma once

#include "target/kernel.cuh"

// Sum c of a product, c being an operand of the statement, %n: what it does is then written once,
// and not once for each of the four, all of which the compiler would have to read.
#define KILN_SUM(sums, l, r, n) sums #l "_" #r "_" n

// T: of a sum, float or double. TOTALS: what was promoted has registers of its own; HELD: it waits
// in local memory.
template <class T, int LEFT, int RIGHT, bool TOTALS, bool HELD = false>
struct SumRegisters {
  static_assert(!HELD || sizeof(T) == 4);
  static constexpr int SIZE = sizeof(T);

  // Once, before all else that a kernel does: PTX knows a name from where it is declared on.
  device_inline void declare() {
#define KILN_DECLARE(sums, l, r) ".reg ." SUM_TYPE " " sums #l "_" #r "_<4>;"
    asm volatile(EACH_PRODUCT(KILN_DECLARE, "s"));
    if constexpr (TOTALS) asm volatile(EACH_PRODUCT(KILN_DECLARE, "t"));
    if constexpr (HELD) asm volatile(".local .align 16 .b8 held[%0];" ::"n"(16 * LEFT * RIGHT));
#undef KILN_DECLARE
  }

#define KILN_CLEAR(sums, l, r) "mov." SUM_TYPE " " KILN_SUM(sums, l, r, "%0") ", 0.0;"
  template <int C = 0>
  device_inline void clear() {
    asm volatile(EACH_PRODUCT(KILN_CLEAR, "s")::"n"(C));
    if constexpr (C < 3) clear<C + 1>();
  }
  template <int C = 0>
  device_inline void clear_totals() {
    asm volatile(EACH_PRODUCT(KILN_CLEAR, "t")::"n"(C));
    if constexpr (C < 3) clear_totals<C + 1>();
  }
#undef KILN_CLEAR

#define KILN_ADD(sums, l, r) \
  "add." SUM_TYPE            \
  " " KILN_SUM("t", l, r, "%0") ", " KILN_SUM("t", l, r, "%0") ", " KILN_SUM(sums, l, r, "%0") ";"
  template <int C = 0>
  device_inline void add_to_totals() {
    asm volatile(EACH_PRODUCT(KILN_ADD, "s")::"n"(C));
    if constexpr (C < 3) add_to_totals<C + 1>();
  }
#undef KILN_ADD

  // Sums (L, r) += left right[4 r] and those behind it, by fused multiply-adds.
  template <int L>
  device_inline void add_products(T left, const T (&right)[4 * RIGHT]) {
#define KILN_FMA(r, c, right) \
  "fma.rn." SUM_TYPE " s%5_" #r "_" #c ", %0, " right ", s%5_" #r "_" #c ";"
#define KILN_FMA_FOUR(type, r)                                                     \
  asm volatile(KILN_FMA(r, 0, "%1") KILN_FMA(r, 1, "%2") KILN_FMA(r, 2, "%3")      \
                   KILN_FMA(r, 3, "%4")::type(left),                               \
               type(right[4 * r]), type(right[4 * r + 1]), type(right[4 * r + 2]), \
               type(right[4 * r + 3]), "n"(L));
#define KILN_FMA_FLOAT(r) KILN_FMA_FOUR("f", r)
#define KILN_FMA_DOUBLE(r) KILN_FMA_FOUR("d", r)
    if constexpr (sizeof(T) == 4) {
      EACH_RIGHT(KILN_FMA_FLOAT)
    } else {
      EACH_RIGHT(KILN_FMA_DOUBLE)
    }
#undef KILN_FMA_DOUBLE
#undef KILN_FMA_FLOAT
#undef KILN_FMA_FOUR
#undef KILN_FMA
  }

#define KILN_HELD(l, r) "held+(" #l "*%0+" #r ")*16"
  // The sums go to local memory,
  device_inline void hold() const {
#define KILN_HOLD(sums, l, r)                                                         \
  "st.local.v4.f32 [" KILN_HELD(l, r) "], {" KILN_SUM(sums, l, r, "0") ", " KILN_SUM( \
      sums, l, r, "1") ", " KILN_SUM(sums, l, r, "2") ", " KILN_SUM(sums, l, r, "3") "};"
    asm volatile(EACH_PRODUCT(KILN_HOLD, "s")::"n"(RIGHT));
#undef KILN_HOLD
  }
  // and what lies there is added to them, two of four at a time, which the barrier keeps apart: the
  // assembler would have as many fours on their way as there are registers, and where these do not
  // lie side by side, it begins again, for a quarter of its time.
  template <int C = 0>
  device_inline void add_held() {
#define KILN_ADD_ONE(name, held) "add.f32 " name ", " name ", " held ";"
#define KILN_ADD(sums, l, r)                                            \
  "ld.local.v2.f32 {h0, h1}, [" KILN_HELD(l, r) "+%1*4];" KILN_ADD_ONE( \
      KILN_SUM(sums, l, r, "%1"), "h0") KILN_ADD_ONE(KILN_SUM(sums, l, r, "%2"), "h1")
    asm volatile("{.reg .f32 h<2>; bar.warp.sync -1;" EACH_PRODUCT(KILN_ADD, "s") "}" ::"n"(RIGHT),
                 "n"(C), "n"(C + 1));
#undef KILN_ADD
#undef KILN_ADD_ONE
    if constexpr (C < 2) add_held<C + 2>();
  }
#undef KILN_HELD

  // What the four sums of product (L, R) are in the end.
  template <int L, int R>
  device_inline void take(T (&four)[4]) const {
    static_assert(sizeof(T) == 4 && L < LEFT && R < RIGHT);
    asm volatile("mov.f32 %0, " STORED_SUMS "%4_%5_0; mov.f32 %1, " STORED_SUMS
                 "%4_%5_1; mov.f32 %2, " STORED_SUMS "%4_%5_2; mov.f32 %3, " STORED_SUMS "%4_%5_3;"
                 : "=f"(four[0]), "=f"(four[1]), "=f"(four[2]), "=f"(four[3])
                 : "n"(L), "n"(R));
  }

// A place, of what is %1 and its steps, but for that of c.
#define KILN_PLACE(l, r, lefts, left, run, right) \
#l "/%2*" lefts "+" #l "%% %2*" left "+" #r "/%1*" run "+" #r "%% %1*" right
#define KILN_STORE(sums, l, r) \
  "st.shared." SUM_TYPE        \
  " [%0+%7+" KILN_PLACE(l, r, "%3", "%4", "%5", "%6") "], " KILN_SUM(sums, l, r, "%8") ";"
#define KILN_STEPS(of, unit)                                      \
  "n"(unit * of(Place::LEFT_RUN, 0, 0)), "n"(unit * of(1, 0, 0)), \
      "n"(unit * of(0, Place::RUN, 0)), "n"(unit * of(0, 1, 0))
  // What they are in the end goes to shared memory, to first[Place::of(l, r, c)].
  template <class Place, int C = 0>
  device_inline void put(T* first) const {
    const u32 at = static_cast<u32>(__cvta_generic_to_shared(first));
    asm volatile(EACH_PRODUCT(KILN_STORE, STORED_SUMS)::"r"(at), "n"(Place::RUN),
                 "n"(Place::LEFT_RUN), KILN_STEPS(Place::of, SIZE), "n"(SIZE * Place::of(0, 0, C)),
                 "n"(C)
                 : "memory");
    if constexpr (C < 3) put<Place, C + 1>(first);
  }
  // Those alone whose line is one of LINES from `line` on.
  template <class Place, int LINES, int C = 0>
  device_inline void put_lines(T* first, u32 line) const {
    const u32 at = static_cast<u32>(__cvta_generic_to_shared(first));
#define KILN_PUT(sums, l, r)                         \
  "sub.u32 d, " KILN_PLACE(l, r, "%9", "%10", "%11", \
                           "%12") ", %13; setp.lt.u32 p, d, %14; @p " KILN_STORE(sums, l, r)
    asm volatile("{.reg .pred p; .reg .u32 d;" EACH_PRODUCT(KILN_PUT, STORED_SUMS) "}" ::"r"(at),
                 "n"(Place::RUN), "n"(Place::LEFT_RUN), KILN_STEPS(Place::of, SIZE),
                 "n"(SIZE * Place::of(0, 0, C)), "n"(C), KILN_STEPS(Place::line, 1),
                 "r"(line - Place::line(0, 0, C)), "n"(LINES)
                 : "memory");
#undef KILN_PUT
    if constexpr (C < 3) put_lines<Place, LINES, C + 1>(first, line);
  }
#undef KILN_STEPS
#undef KILN_STORE
#undef KILN_PLACE
};

#undef KILN_SUM
