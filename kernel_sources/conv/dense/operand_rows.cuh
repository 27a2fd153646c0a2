// Which of the 64 rows of operand A belong to a warp. The includer has defined LEFT_IN_WORDS, as
// tile.cuh does.
#pragma once

#include "target/kernel.cuh"

// The row of the operand that is row `row` of the warp's 16. With LEFT_IN_WORDS lanes read their
// words from lines of 32 contiguous pixels. A warp's 16 rows are then runs of 4 pixels, chosen so
// that a read of 8 pixels of 4 channels by the warp meets 32 different banks: TMA stores the
// 16-byte unit u of channel c at u XOR (c mod 8), so the two runs of a read are 4 units apart.
device_inline int row_of_operand(int warp, int row) {
  if constexpr (LEFT_IN_WORDS)
    return warp / 2 * 32 + row % 8 / 4 * 16 + warp % 2 * 8 + row / 8 * 4 + row % 4;
  else
    return warp * 16 + row;
}
