// Passes a thread's accumulators to the epilogue line by line straight from registers, for kernels
// that have no free shared memory.
#pragma once

#include "conv/mma/promoted_sums.cuh"
#include "target/sum_lines.cuh"

// Calls store(piece, line, first element) once for every piece of every line, then store.finish().
template <class Sums, class Store>
device_inline void store_lines(Sums& sums, Store store) {
  constexpr bool ALONG_LEFT = LINES_ALONG_M == COLUMNS_LEFT;
  static_assert(ALONG_LEFT || RIGHT_RUN == 1, "lines follow each other by right operands");
#pragma unroll 1
  for (int index = 0; index < LINES; ++index) {
    compute_t line[LINE];
    take_line<typename Sums::LinePlace, ALONG_LEFT>(sums.registers, line);
#pragma unroll 1
    for (int first = 0; first < LINE; first += PIECE) {
      compute_t piece[PIECE];
      take_piece<1>(piece, line, first);
      store(piece, index, first);
    }
  }
  store.finish();
}
