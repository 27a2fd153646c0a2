// Reads operands of mma.sync from shared memory: rows as fragments, and columns as words of a band
// of x that keeps its own layout. A word (an element of f32 or f64, or two of 16 bits) is at the
// sum of two offsets, that of its column and that of the word in the reduction. So no column of the
// lowered image is ever written out.
#pragma once

#include "conv/mma/fragments.cuh"

// The offsets of a lane's operands. Rows are PITCH bytes apart; with ROWS_INNER they are
// contiguous, and the elements of the reduction are PITCH bytes apart. MASKED: some words must be
// masked; 3xTF32 does not need that, because it recomputes sums that are not finite by their
// definition (scaled_sums.cuh). Four lanes read four words: half a fragment (f64: all of it).
// ROW_FOURS: these four words are contiguous, all of them count or none does, and the next row
// follows after ROW_FOURS such groups, ROW_PLACE bytes further. With ROW_FOURS 0 the table holds
// the offsets.
template <int PITCH, bool ROWS_INNER, bool MASKED, int ROW_FOURS, int ROW_PLACE>
struct WordReader {
  static constexpr int FOURS = FRAGMENT_WORDS / 4;  // groups of four words in a fragment

  const byte_t* rows;
  const ReductionWord* table;
  int first_word;           // the lane's first word in a fragment
  int columns[PRODUCTS_N];  // offsets of the lane's columns in x, in bytes

  device_inline WordReader(const byte_t* first_row, int warp_m, int lane,
                           const ReductionWord* words)
      : rows(first_row + (ROWS_INNER
                              ? warp_m * ELEMENT_BYTES + transposed_place_m<PITCH>(lane)
                              : (warp_m + fragment_row_m(lane)) * PITCH + fragment_part_m(lane))),
        table(words),
        first_word(lane % 4) {}

  // The column of product j that the lane reads.
  device_inline static int column(int warp_n, int lane, int j) { return warp_n + j * 8 + lane / 4; }
  device_inline void set_column(int j, int place) {
    columns[j] = place + (ROW_FOURS > 0 ? first_word * WORD_BYTES : 0);
  }

  static constexpr int ALL_WORDS = -1;

  // rows_at: the offset of the rows from the first row that the constructor got, in bytes. words:
  // how many words of the reduction count.
  device_inline void load(Fragments& to, int rows_at, const byte_t* x, int fragment,
                          int words) const {
    if constexpr (ROWS_INNER)
      load_transposed_m<PITCH>(to, rows + rows_at + fragment * (FRAGMENT_K * PITCH));
    else
      load_fragments_m<PITCH>(to, rows + rows_at + fragment * FRAGMENT_BYTES);
#pragma unroll
    for (int four = 0; four < FOURS; ++four) {
      if constexpr (ROW_FOURS > 0) {
        constexpr u32 OF_ROW = ROW_FOURS > 0 ? ROW_FOURS : 1;
        constexpr int BYTES = 4 * WORD_BYTES;
        const u32 first = static_cast<u32>(fragment) * FOURS, number = first + four;
        // If a row is whole fragments, both halves of a fragment are in the same row.
        const u32 row = (OF_ROW % FOURS == 0 ? first : number) / OF_ROW;
        // Words that only fill up the reduction may be beyond all rows.
        const bool counts = words == ALL_WORDS || number * 4 < static_cast<u32>(words);
        const int place = counts ? static_cast<int>(row * ROW_PLACE) +
                                       static_cast<int>(first - row * OF_ROW) * BYTES + four * BYTES
                                 : 0;
        const u32 mask = !MASKED || counts ? ~0u : 0;
#pragma unroll
        for (int j = 0; j < PRODUCTS_N; ++j) take_word(to.n[j], four, x + place + columns[j], mask);
      } else {
        const int number = fragment * FRAGMENT_WORDS + four * 4 + first_word;
        ReductionWord word = table[number];
        if (!MASKED)
          word.mask = ~0u;
        else if (words != ALL_WORDS && number >= words)
          word.mask = 0;
#pragma unroll
        for (int j = 0; j < PRODUCTS_N; ++j)
          take_word(to.n[j], four, x + columns[j] + word.place, word.mask);
      }
    }
  }

 private:
  device_inline static void take_word(u32 (&to)[2], int four, const byte_t* from, u32 mask) {
    if constexpr (WORD_BYTES == 8) {
      load_pair(to[0], to[1], from);
      to[0] &= mask, to[1] &= mask;
    } else {
      to[four] = *reinterpret_cast<const u32*>(from) & mask;
    }
  }
};
