// A thread's accumulators, as PTX registers with names that the C++ compiler does not see. It would
// carry each of a hundred values through every loop and branch, which took up to half of its time
// (src/compile/README.md). kernel_sources/host/sum_registers.cuh defines the same names for the
// host device.
//
// There are LEFT x RIGHT products of four sums each. The sums of product (l, r) are s<l>_<r>_0 to
// _3; their promoted totals are t<l>_<r>_0 to _3. No loop can generate a register's name, so the
// generator writes these macros: EACH_PRODUCT(X, sums) is X(sums, l, r) for each product;
// EACH_RIGHT(X) is X(r) for each right operand; STORED_SUMS is "s" or "t", whichever holds the
// final sums; SUM_TYPE is the PTX type of a sum. Where possible, an operation on all sums is one
// asm statement, or one for each c, of which the compiler sees only the operands.
//
// A Place says where sum c of product (l, r) goes: to element Place::of(l, r, c), in line
// Place::line(l, r, c). Both functions are sums of five terms: one for each of c, l / LEFT_RUN, l %
// LEFT_RUN, r / RUN and r % RUN (constants of Place), each but the first proportional to its
// argument.
#pragma once

#include "target/kernel.cuh"

// The name of sum c of a product, where c is operand %n of the asm statement. So a statement's text
// is written once and not four times, which the compiler would have to parse.
#define KILN_SUM(sums, l, r, n) sums #l "_" #r "_" n

// T is float or double. TOTALS: promoted totals have registers of their own. HELD: totals wait in
// local memory.
template <class T, int LEFT, int RIGHT, bool TOTALS, bool HELD = false>
struct SumRegisters {
  static_assert(!HELD || sizeof(T) == 4);
  static constexpr int SIZE = sizeof(T);

  // A kernel calls this once, before anything else, because PTX knows a name only after its
  // declaration.
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

  // Adds left * right[4 * r + c] to sum c of product (L, r), for every r and c, by fused
  // multiply-adds.
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
  // Copies the sums to local memory.
  device_inline void hold() const {
#define KILN_HOLD(sums, l, r)                                                         \
  "st.local.v4.f32 [" KILN_HELD(l, r) "], {" KILN_SUM(sums, l, r, "0") ", " KILN_SUM( \
      sums, l, r, "1") ", " KILN_SUM(sums, l, r, "2") ", " KILN_SUM(sums, l, r, "3") "};"
    asm volatile(EACH_PRODUCT(KILN_HOLD, "s")::"n"(RIGHT));
#undef KILN_HOLD
  }
  // Adds what hold() copied to the sums, two sums of each product at a time. The warp barrier
  // separates the two halves. Otherwise ptxas would keep as many loads of four in flight as there
  // are registers, and where it cannot find adjacent ones it starts over, which took a quarter of
  // its time.
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

  // Copies the final values of the four sums of product (L, R).
  template <int L, int R>
  device_inline void take(T (&four)[4]) const {
    static_assert(sizeof(T) == 4 && L < LEFT && R < RIGHT);
    asm volatile("mov.f32 %0, " STORED_SUMS "%4_%5_0; mov.f32 %1, " STORED_SUMS
                 "%4_%5_1; mov.f32 %2, " STORED_SUMS "%4_%5_2; mov.f32 %3, " STORED_SUMS "%4_%5_3;"
                 : "=f"(four[0]), "=f"(four[1]), "=f"(four[2]), "=f"(four[3])
                 : "n"(L), "n"(R));
  }

// The address of a sum without its term for c. %1 is Place::RUN, %2 is Place::LEFT_RUN; the other
// arguments name the operands with the factors of l / LEFT_RUN, l % LEFT_RUN, r / RUN and r % RUN.
#define KILN_PLACE(l, r, lefts, left, run, right) \
#l "/%2*" lefts "+" #l "%% %2*" left "+" #r "/%1*" run "+" #r "%% %1*" right
#define KILN_STORE(sums, l, r) \
  "st.shared." SUM_TYPE        \
  " [%0+%7+" KILN_PLACE(l, r, "%3", "%4", "%5", "%6") "], " KILN_SUM(sums, l, r, "%8") ";"
#define KILN_STEPS(of, unit)                                      \
  "n"(unit * of(Place::LEFT_RUN, 0, 0)), "n"(unit * of(1, 0, 0)), \
      "n"(unit * of(0, Place::RUN, 0)), "n"(unit * of(0, 1, 0))
  // Stores the final sums to shared memory, each to first[Place::of(l, r, c)].
  template <class Place, int C = 0>
  device_inline void put(T* first) const {
    const u32 at = static_cast<u32>(__cvta_generic_to_shared(first));
    asm volatile(EACH_PRODUCT(KILN_STORE, STORED_SUMS)::"r"(at), "n"(Place::RUN),
                 "n"(Place::LEFT_RUN), KILN_STEPS(Place::of, SIZE), "n"(SIZE * Place::of(0, 0, C)),
                 "n"(C)
                 : "memory");
    if constexpr (C < 3) put<Place, C + 1>(first);
  }
  // Like put(), but stores only the sums of LINES lines from `line` on.
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
