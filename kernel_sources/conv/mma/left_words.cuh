// Columns of the tile as operand A of wgmma: a lane reads their words from lines of x into
// registers, each at its own offset (fragment_words.cuh), where 3xTF32 splits them. Operand B is in
// shared memory.
#pragma once

#include "conv/mma/fragment_words.cuh"
#include "conv/mma/left_fragments.cuh"

// The offsets of a lane's words. MASKED: some words must be masked; not with 3xTF32, whose sums are
// recomputed by their definition where they are not finite.
template <bool MASKED>
struct LeftReader {
  static constexpr int ALL_WORDS = -1, HALF_WORDS = FRAGMENT_WORDS / 2;

  const ReductionWord* table;
  int first_word;          // the lane's first word in a fragment
  int columns[THREAD_N];   // offsets of its columns in x, in bytes
  ReductionWord ahead[2];  // table entries of the next fragment, read ahead

  device_inline explicit LeftReader(const ReductionWord* words)
      : table(words), first_word(static_cast<int>(thread_x()) % HALF_WORDS) {}

  // Must be called before the first fragment is read.
  device_inline void fetch(int fragment) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      ahead[half] = table[fragment * FRAGMENT_WORDS + half * HALF_WORDS + first_word];
  }
  // next: the fragment after it. words: words of the reduction that count.
  device_inline void load(LeftFragments& to, const byte_t* x, int fragment, int next, int words) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int number = fragment * FRAGMENT_WORDS + half * HALF_WORDS + first_word;
      ReductionWord word = ahead[half];
      if (!MASKED || SPLIT)
        word.mask = ~0u;
      else if (words != ALL_WORDS && number >= words)
        word.mask = 0;
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) to.word(j, half) = word.read(x + columns[j]);
    }
    fetch(next);
    to.split_tf32();
  }
};

// The position of a thread's first accumulator: a warp has all rows of its columns.
device_inline Position left_position(int thread) {
  const int lane = thread % 32;
  return {lane % LANES_M * RUN_M, thread / 32 * WARP_N + lane / LANES_M * RUN_N};
}
static_assert(COLUMNS_LEFT && WARP_M == TILE_M);
