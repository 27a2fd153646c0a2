// The right operand of products by warpgroups in shared memory, of f32 in three products: wholes
// and, RIGHT_REST bytes behind them, rests.
#pragma once

#include "conv/mma/fragment_words.cuh"
#include "conv/mma/promoted_sums.cuh"

// A plane is 16 bytes of the reduction, of all rows or all columns of the tile. It is followed by
// 16 bytes that are not used, so that lanes which write neighbouring planes write to different
// banks.
constexpr int RIGHT_LINES = COLUMNS_LEFT ? TILE_M : TILE_N;
constexpr int RIGHT_PLANE = RIGHT_LINES * 16 + 16;

// Bytes from the first plane on to word `number` of line i.
device_inline constexpr int right_place(int i, int number) {
  return number / 4 * RIGHT_PLANE + i * 16 + number % 4 * 4;
}

// Takes what has landed in so many planes apart, of SETS that lie SET bytes apart.
template <int PLANES, int SETS = 1, int SET = 0>
device_inline void take_apart(byte_t* planes, byte_t* rests) {
  struct alignas(16) Four {
    float element[4];
  };
  constexpr int COUNT = SETS * PLANES * RIGHT_LINES, TURN = 2 * THREADS;
#pragma unroll 1
  for (int turn = 0; turn < COUNT; turn += TURN) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // both on their way at once
      const int i = turn + half * THREADS + static_cast<int>(thread_x());
      if (COUNT % TURN != 0 && i >= COUNT) continue;
      const int plane = i / RIGHT_LINES;
      const int at = plane / PLANES * SET + plane % PLANES * RIGHT_PLANE + i % RIGHT_LINES * 16;
      Four whole = *reinterpret_cast<const Four*>(planes + at), rest;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const Parts parts = split(whole.element[j]);
        whole.element[j] = parts.whole, rest.element[j] = parts.rest;
      }
      *reinterpret_cast<Four*>(planes + at) = whole;
      *reinterpret_cast<Four*>(rests + at) = rest;
    }
  }
}
