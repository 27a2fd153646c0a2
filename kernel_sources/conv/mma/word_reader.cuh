// Operands of mma.sync of which one, the rows, is in shared memory as fragments, and the other is a
// band of x in its own layout. A product's operand is a word of the band (an element of f32 or f64,
// or two of 16 bits) at the offset of its column plus that of a word of the reduction. So no column
// of the lowered image is ever written out.
#pragma once

#include "conv/mma/fragments.cuh"

// The offsets of a lane's operands. Rows are PITCH bytes apart or, with ROWS_INNER, contiguous,
// with the steps of their reduction PITCH bytes apart. MASKED: some words must be masked; not with
// 3xTF32, whose sums are recomputed by their definition where they are not finite
// (scaled_sums.cuh). Four lanes read four words: half a fragment (f64: all of it). ROW_FOURS: these
// are contiguous, all of them count or none, and after so many fours the next row follows,
// ROW_PLACE bytes further; 0: the table holds the offsets.
template <int PITCH, bool ROWS_INNER, bool MASKED, int ROW_FOURS, int ROW_PLACE>
struct WordReader {
  static constexpr int FOURS = FRAGMENT_WORDS / 4;  // of a fragment

  const byte_t* rows;
  const ReductionWord* table;
  int first_word;           // of the lane's in a fragment
  int columns[PRODUCTS_N];  // their places in x, in bytes

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

  // rows_at: bytes from the given first row. words: words of the reduction that count.
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
        // In a row of whole fragments the second half of a fragment follows the first.
        const u32 row = (OF_ROW % FOURS == 0 ? first : number) / OF_ROW;
        // Words that only fill up may lie beyond all rows.
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
