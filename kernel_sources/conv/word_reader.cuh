// Operands of which one, the rows, lies along the reduction in shared memory, and the other is a
// band of x as it lies in memory: what a product multiplies with is a word of it, an element of f32
// or two of 16 bits, at the place of a column plus that of a word of the reduction. So everything
// that reads x somewhere reads it where it lies, and no column is ever written out.
#pragma once

#include "conv/row_loader.cuh"

constexpr int FRAGMENT_WORDS = FRAGMENT_BYTES / 4;

// A table in shared memory holds the places of the reduction's words, in bytes, and in the low two
// bits what counts of each: what fills up rows and fragments is no operand, however infinite.
enum : u32 { WHOLE_WORD = 0, FIRST_HALF = 1, NO_WORD = 2 };

template <bool FILLED_UP>
struct ReductionWord {
  u32 place, mask;

  device_inline explicit ReductionWord(u32 entry) : place(entry), mask(~0u) {
    if constexpr (FILLED_UP) {
      const u32 counts = entry % 4;
      place = entry - counts;
      mask = counts == WHOLE_WORD ? ~0u : counts == FIRST_HALF ? 0xffffu : 0u;
    }
  }
  // further: words of the same row.
  device_inline u32 read(const byte_t* column, int further = 0) const {
    const byte_t* const at = column + place;
    const u32 word = *reinterpret_cast<const u32*>(at + further * 4);
    return FILLED_UP ? word & mask : word;
  }
};

// Where a lane finds its operands. Rows lie PITCH bytes apart. FRAGMENTS_IN_ROWS: the words of a
// fragment lie side by side, and all of them count or none.
template <int PITCH, bool FILLED_UP, bool FRAGMENTS_IN_ROWS>
struct WordReader {
  const byte_t* rows;
  const u32* table;
  int first_word;           // of the lane's in a fragment
  int columns[PRODUCTS_N];  // their places in x, in bytes

  device_inline WordReader(const byte_t* first_row, int warp_m, int lane, const u32* words)
      : rows(first_row + (warp_m + fragment_row_m(lane)) * PITCH + fragment_part_m(lane)),
        table(words),
        first_word(lane % 4) {}

  // The lane's column of product j.
  device_inline static int column(int warp_n, int lane, int j) { return warp_n + j * 8 + lane / 4; }

  // rows_at: bytes from the first row given. words: of the reduction that count.
  device_inline void load(Fragments& to, int rows_at, const byte_t* x, int fragment,
                          int words) const {
    load_fragments_m<PITCH>(to, rows + rows_at + fragment * FRAGMENT_BYTES);
    const auto word = [&](int number) {
      const u32 entry = table[number];
      return ReductionWord<FILLED_UP>(FILLED_UP && number >= words ? u32(NO_WORD) : entry);
    };
    const int first = fragment * FRAGMENT_WORDS + first_word;
    const ReductionWord<FILLED_UP> low = word(first);
    if constexpr (FRAGMENTS_IN_ROWS) {
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j) {
        to.n[j][0] = low.read(x + columns[j]);
        to.n[j][1] = low.read(x + columns[j], 4);
      }
    } else {
      const ReductionWord<FILLED_UP> high = word(first + 4);
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j) {
        to.n[j][0] = low.read(x + columns[j]);
        to.n[j][1] = high.read(x + columns[j]);
      }
    }
  }
};
