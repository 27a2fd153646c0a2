// Columns of the tile as left operands of products by warpgroups: a lane reads their words from
// lines of x into registers, each at its own place (fragment_words.cuh), and f32 that is three
// products is taken apart there. The right operand lies in shared memory, where products read it.
#pragma once

#include "conv/fragment_words.cuh"
#include "conv/promoted_sums.cuh"
#include "target/wgmma.cuh"

// 32 bytes of the reduction, of a lane's columns.
struct LeftFragments {
  u32 whole[PRODUCTS_LEFT][4], rest[SPLIT ? PRODUCTS_LEFT : 1][4];

  // Word `half` of the lane's two, of column j.
  device_inline u32& word(int j, int half) { return whole[j / 2][half * 2 + j % 2]; }
  // Once read.
  device_inline void take_apart() {
    if constexpr (SPLIT) {
#pragma unroll
      for (int i = 0; i < PRODUCTS_LEFT; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const Parts parts = split(float_of(whole[i][c]));
          whole[i][c] = bits_of(parts.whole), rest[i][c] = bits_of(parts.rest);
        }
    }
  }
};

// Where a lane finds them. MASKED: some words are to be masked; not those of f32 in three products,
// which come to the fused multiply-adds where they are not finite.
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

struct LeftProducts : WarpgroupProducts<element_t, PRODUCTS_RIGHT, PRODUCTS_LEFT> {
  device_inline void settle(PromotedSums& sums) { this->template wait<0>(sums.part); }
  // Starts a fragment's products, a group of their own. rest: bytes from the right operand's wholes
  // to its rests.
  template <bool RIGHT_INNER>
  device_inline void start(PromotedSums& sums, const LeftFragments& left, SharedMatrix right,
                           int rest) {
    this->begin();
#pragma unroll
    for (int i = 0; i < PRODUCTS_LEFT; ++i) {
      if constexpr (SPLIT) {
        this->template multiply<RIGHT_INNER>(sums.part[i], left.rest[i], right, !sums.fresh);
        this->template multiply<RIGHT_INNER>(sums.part[i], left.whole[i], right.moved(rest));
      }
      this->template multiply<RIGHT_INNER>(sums.part[i], left.whole[i], right,
                                           SPLIT || !sums.fresh);
    }
    sums.fresh = false;
    this->commit();
  }
};
