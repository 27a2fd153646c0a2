// Columns of the tile as left operands of products by warpgroups: a lane reads their words from
// lines of x into registers, each at its own place (fragment_words.cuh), and f32 that is three
// products is taken apart there. The right operand lies in shared memory, where products read it.
#pragma once

#include "conv/mma/fragment_words.cuh"
#include "conv/mma/left_fragments.cuh"

// Where a lane finds them. MASKED: some words are to be masked; not those of f32 in three products,
// whose sums are added up by their definition where they are not finite.
template <bool MASKED>
struct LeftReader {
  static constexpr int ALL_WORDS = -1, HALF_WORDS = FRAGMENT_WORDS / 2;

  const ReductionWord* table;
  int first_word;          // of the lane's in a fragment
  int columns[THREAD_N];   // their places in x, in bytes
  ReductionWord ahead[2];  // of the fragment to be read next, so that nobody waits for the table

  device_inline explicit LeftReader(const ReductionWord* words)
      : table(words), first_word(static_cast<int>(thread_x()) % HALF_WORDS) {}

  // Before the first fragment is read.
  device_inline void fetch(int fragment) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      ahead[half] = table[fragment * FRAGMENT_WORDS + half * HALF_WORDS + first_word];
  }
  // next: the fragment after it. words: of the reduction that count.
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
    to.take_apart();
  }
};

// Of a thread's first sum: a warp has all rows of its columns.
device_inline Position left_position(int thread) {
  const int lane = thread % 32;
  return {lane % LANES_M * RUN_M, thread / 32 * WARP_N + lane / LANES_M * RUN_N};
}
static_assert(COLUMNS_LEFT && WARP_M == TILE_M);
