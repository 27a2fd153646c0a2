// Reads f32 accumulators out of their registers (sum_registers.cuh) one line at a time.
// kernel_sources/host/sum_lines.cuh defines the same name for the host device.
#pragma once

#include "target/sum_registers.cuh"

// Copies the first line of the final sums to line[] and moves all other lines up by one. With
// ALONG_LEFT, a line is a row of a left operand, and each product has two, numbered c / 2; else it
// is a column of a right operand, and each product has two, numbered c % 2. Place::in_line(l, r, c)
// is the index of a sum in its line.
template <class Place, bool ALONG_LEFT, int LEFT, int RIGHT, bool TOTALS, bool HELD>
device_inline void take_line(SumRegisters<float, LEFT, RIGHT, TOTALS, HELD>& /*registers*/,
                             float (&line)[(ALONG_LEFT ? RIGHT : LEFT) * 2]) {
#define KILN_SUM(sums, l, r, c) sums #l "_" #r "_" #c
#define KILN_TAKE(sums, l, r)                                                             \
  if constexpr ((ALONG_LEFT ? l : r) == 0)                                                \
    asm volatile("mov.f32 %0, " KILN_SUM(sums, l, r, 0) "; mov.f32 %1, " sums "%2_%3_%4;" \
                 : "=f"(line[Place::in_line(l, r, 0)]),                                   \
                   "=f"(line[Place::in_line(l, r, ALONG_LEFT ? 1 : 2)])                   \
                 : "n"(l), "n"(r), "n"(ALONG_LEFT ? 1 : 2));
  EACH_PRODUCT(KILN_TAKE, STORED_SUMS)
#undef KILN_TAKE
#define KILN_UP(to, from) "mov.f32 " to ", " from ";"
#define KILN_MOVE_UP(sums, l, r)                                                          \
  if constexpr (ALONG_LEFT)                                                               \
    asm volatile(KILN_UP(KILN_SUM(sums, l, r, 0), KILN_SUM(sums, l, r, 2))                \
                     KILN_UP(KILN_SUM(sums, l, r, 1), KILN_SUM(sums, l, r, 3))            \
                         KILN_UP(KILN_SUM(sums, l, r, 2), sums "%0_" #r "_0")             \
                             KILN_UP(KILN_SUM(sums, l, r, 3),                             \
                                     sums "%0_" #r "_1")::"n"(l + 1 < LEFT ? l + 1 : l)); \
  else                                                                                    \
    asm volatile(KILN_UP(KILN_SUM(sums, l, r, 0), KILN_SUM(sums, l, r, 1))                \
                     KILN_UP(KILN_SUM(sums, l, r, 2), KILN_SUM(sums, l, r, 3))            \
                         KILN_UP(KILN_SUM(sums, l, r, 1), sums #l "_%0_0")                \
                             KILN_UP(KILN_SUM(sums, l, r, 3),                             \
                                     sums #l "_%0_2")::"n"(r + 1 < RIGHT ? r + 1 : r));
  EACH_PRODUCT(KILN_MOVE_UP, STORED_SUMS)
#undef KILN_MOVE_UP
#undef KILN_UP
#undef KILN_SUM
}
