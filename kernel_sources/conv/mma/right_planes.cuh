// Operand B of wgmma in shared memory, which 3xTF32 splits into hi parts and lo parts.
#pragma once

#include "conv/mma/fragment_words.cuh"
#include "conv/mma/promoted_sums.cuh"

// A plane is 16 bytes of the reduction of all rows, or all columns, of the tile. 16 unused bytes
// follow it, so that lanes that write neighbouring planes hit different banks.
constexpr int RIGHT_LINES = COLUMNS_LEFT ? TILE_M : TILE_N;
constexpr int RIGHT_PLANE = RIGHT_LINES * 16 + 16;

// The offset of word `number` of line i from the first plane, in bytes.
device_inline constexpr int right_place(int i, int number) {
  return number / 4 * RIGHT_PLANE + i * 16 + number % 4 * 4;
}

// Splits the elements of PLANES planes in place: they become their hi parts, and the lo parts go to
// lo_planes. There are SETS such sets of planes, SET bytes apart.
template <int PLANES, int SETS = 1, int SET = 0>
device_inline void split_tf32(byte_t* planes, byte_t* lo_planes) {
  struct alignas(16) Four {
    float element[4];
  };
  constexpr int COUNT = SETS * PLANES * RIGHT_LINES, TURN = 2 * THREADS;
#pragma unroll 1
  for (int turn = 0; turn < COUNT; turn += TURN) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // both loads in flight at once
      const int i = turn + half * THREADS + static_cast<int>(thread_x());
      if (COUNT % TURN != 0 && i >= COUNT) continue;
      const int plane = i / RIGHT_LINES;
      const int at = plane / PLANES * SET + plane % PLANES * RIGHT_PLANE + i % RIGHT_LINES * 16;
      Four hi = *reinterpret_cast<const Four*>(planes + at), lo;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const HiLo parts = split(hi.element[j]);
        hi.element[j] = parts.hi, lo.element[j] = parts.lo;
      }
      *reinterpret_cast<Four*>(planes + at) = hi;
      *reinterpret_cast<Four*>(lo_planes + at) = lo;
    }
  }
}
