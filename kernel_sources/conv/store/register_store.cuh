// A thread's sums on their way to the epilogue where no shared memory is free for them: line by
// line out of their registers.
#pragma once

#include "conv/mma/promoted_sums.cuh"
#include "target/sum_lines.cuh"

// Hands every piece of every line to store(piece, line, first element) once, then ends with
// store.finish().
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
