// Stores a warpgroup's results through a slab of shared memory. TMA stores the slab while the
// warpgroup goes on, or the warpgroup's threads store it. The tensor that beta scales is loaded
// into the slab before.
//
// A slab has SLAB_BLOCKS blocks of SLAB_LINES lines of SLAB_LINE results that are contiguous in the
// output: rows of a pixel or pixels of a row. LINES_LEFT: a line is a row of operand A; else a
// column of operand B.
//
// The includer has defined SLABS, SLAB_BYTES, the constants named above, PIXELS_LEFT and
// LEFT_IN_WORDS, as tile.cuh does.
#pragma once

#include "conv/dense/operand_rows.cuh"
#include "conv/dense/pairs.cuh"
#include "conv/dense/params.h"
#include "conv/store/epilogue.cuh"
#include "target/bulk_copy.cuh"
#include "target/matrix_store.cuh"
#include "target/mma.cuh"
#include "target/warpgroup.cuh"

constexpr int SLAB_LINE_BYTES = SLAB_LINE * static_cast<int>(sizeof(element_t));
constexpr int SLAB_BLOCK_BYTES = SLAB_LINES * SLAB_LINE_BYTES;
static_assert(SLAB_BLOCKS == 1 || SLAB_BLOCK_BYTES % 1024 == 0);
static_assert(SLAB_BLOCKS * SLAB_BLOCK_BYTES <= SLAB_BYTES);
// The byte offset in a block of 16 bytes of a line.
device_inline int place_in_block(int line, int chunk) {
  return line * SLAB_LINE_BYTES +
         (chunk ^ line * SLAB_LINE_BYTES / 128 % (SLAB_LINE_BYTES / 16)) * 16;
}

// The stores of a warpgroup. All its threads call all functions.
class Store {
  Epilogue epilogue_;
  unsigned char* slabs_;
  Mbarrier& landed_;  // barrier of the loads of what beta scales
  u32 group_, parity_ = 0;
  int slab_ = 0;

 public:
  // slabs: the warpgroup's SLABS slabs; landed: a barrier of one arrival, for loads of what beta
  // scales.
  device_inline Store(const DenseParams& params, unsigned char* slabs, Mbarrier& landed, u32 group)
      : slabs_(slabs), landed_(landed), group_(group) {
    epilogue_.bias = static_cast<const output_t*>(params.bias);
    epilogue_.alpha = static_cast<compute_t>(params.alpha);
    epilogue_.beta = static_cast<compute_t>(params.beta);
    epilogue_.coef = coefficients_of<compute_t>(params);
  }

  // Stores the products from FIRST to END of operand A number L. place.store(block) starts the
  // store of a block, place.load(block, barrier) the load of what beta scales, place.next_block()
  // moves on; place.row is the first row. With Place::BY_THREADS all threads call both for their
  // parts. `any`: whether there were any products; if not, the sums are 0.
  template <int L, int FIRST, int END, class Sums, class Place>
  device_inline void store(const Sums& sums, const Place& place, bool any) {
    unsigned char* const slab = slabs_ + slab_ * SLAB_BYTES;
    if (++slab_ == SLABS) slab_ = 0;
    if constexpr (Place::BY_THREADS)
      by_threads<L, FIRST, END>(slab, sums, place, any);
    else
      by_copy_engine<L, FIRST, END>(slab, sums, place, any);
  }
  // By the copy engine. `added`: what beta scales, arranged as in a slab; null: nothing. turn(slab)
  // comes before the slab is stored: each warp may change the lines that it wrote itself.
  template <int L, int FIRST, int END, class Sums, class Place, class Turn>
  device_inline void store_turned(const Sums& sums, const Place& place, const unsigned char* added,
                                  const Turn& turn) {
    unsigned char* const slab = slabs_ + slab_ * SLAB_BYTES;
    if (++slab_ == SLABS) slab_ = 0;
    if (thread_x() % 128 == 0) bulk_wait_read<SLABS - 1>();  // the slab's last store
    named_barrier<128>(1 + group_);
    put<L, FIRST, END>(sums, slab, added, place.row, true, added != nullptr);
    warp_barrier();
    turn(slab);
    send(slab, place);
  }
  // Must be called before the block exits.
  device_inline void finish() {
    if (thread_x() % 128 == 0) bulk_wait_read<0>();
  }

 private:
  template <int L, int FIRST, int END, class Sums, class Place>
  device_inline void by_copy_engine(unsigned char* slab, const Sums& sums, const Place& place,
                                    bool any) {
    const bool first_thread = thread_x() % 128 == 0;
    const bool has_residual = epilogue_.beta != 0;
    if (first_thread) {
      bulk_wait_read<SLABS - 1>();  // until the slab's last store has read it
      if (has_residual) {
        landed_.arrive_and_expect(static_cast<u32>(SLAB_BLOCKS * SLAB_BLOCK_BYTES));
        each_block(slab, place,
                   [&](unsigned char* block, const Place& at) { at.load(block, landed_); });
      }
    }
    if (has_residual) {
      landed_.wait(parity_);
      parity_ ^= 1;
    } else {
      named_barrier<128>(1 + group_);
    }
    put<L, FIRST, END>(sums, slab, slab, place.row, any, has_residual);
    send(slab, place);
  }

  // Starts the copy engine's store of a slab that the warpgroup has written.
  template <class Place>
  device_inline void send(unsigned char* slab, const Place& place) const {
    show_to_copy_engine();
    named_barrier<128>(1 + group_);
    if (thread_x() % 128 == 0) {
      each_block(slab, place, [](const unsigned char* block, const Place& at) { at.store(block); });
      bulk_commit();
    }
  }

  template <int L, int FIRST, int END, class Sums, class Place>
  device_inline void by_threads(unsigned char* slab, const Sums& sums, const Place& place,
                                bool any) {
    const bool has_residual = epilogue_.beta != 0;
    named_barrier<128>(1 + group_);  // the stores of the slab's last results have all been issued
    if (has_residual) {
      each_block(slab, place, [](unsigned char* block, const Place& at) { at.load(block); });
      named_barrier<128>(1 + group_);
    }
    put<L, FIRST, END>(sums, slab, slab, place.row, any, has_residual);
    named_barrier<128>(1 + group_);
    each_block(slab, place, [](const unsigned char* block, const Place& at) { at.store(block); });
  }

  template <class Place, class F>
  device_inline static void each_block(unsigned char* slab, Place place, const F& f) {
#pragma unroll
    for (int block = 0; block < SLAB_BLOCKS; ++block, place.next_block())
      f(slab + block * SLAB_BLOCK_BYTES, place);
  }

  // The residual is at `from`, arranged as in the slab, which it may be.
  template <int L, int FIRST, int END, class Sums>
  device_inline void put(const Sums& sums, unsigned char* slab, const unsigned char* from, int row,
                         bool any, bool has_residual) {
    if constexpr (sizeof(element_t) == 2)
      put_pairs<element_t, L, FIRST, FIRST, END>(sums, slab, from, row, any, has_residual);
    else
      put_words<L, FIRST, FIRST, END>(sums, slab, from, row, any, has_residual);
  }

  // f32: writes each sum of a product by itself.
  template <int L, int R, int FIRST, int END, class Sums>
  device_inline void put_words(const Sums& sums, unsigned char* slab, const unsigned char* from,
                               int row, bool any, bool has_residual) {
    const int lane = static_cast<int>(thread_x() % 32),
              warp = static_cast<int>(thread_x() / 32 % 4);
    float four[4];
    sums.template take<L, R>(four);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int left = row_of_operand(warp, lane / 4 + i / 2 * 8),
                right = (R - FIRST) * 8 + lane % 4 * 2 + i % 2;
      const int of_row = PIXELS_LEFT ? right : left, line = LINES_LEFT ? left : right,
                in_line = LINES_LEFT ? right : left;
      const int word = in_line % SLAB_LINE;
      const int at =
          in_line / SLAB_LINE * SLAB_BLOCK_BYTES + place_in_block(line, word / 4) + word % 4 * 4;
      const compute_t z_value =
          has_residual ? to_compute(*reinterpret_cast<const output_t*>(from + at)) : compute_t(0);
      *reinterpret_cast<output_t*>(slab + at) =
          epilogue_.finish(MAY_LACK_TAPS && !any ? 0.0f : four[i], bias_of(row + of_row), z_value);
    }
    if constexpr (R + 1 < END)
      put_words<L, R + 1, FIRST, END>(sums, slab, from, row, any, has_residual);
  }

  // 16 bits: writes two products as four 8x8 matrices (stmatrix). Lane l gives the address of line
  // l % 8 of matrix l / 8.
  template <class T, int L, int R, int FIRST, int END, class Sums>
  device_inline void put_pairs(const Sums& sums, unsigned char* slab, const unsigned char* from,
                               int row, bool any, bool has_residual) {
    const int lane = static_cast<int>(thread_x() % 32),
              warp = static_cast<int>(thread_x() / 32 % 4);
    constexpr int PRODUCT = R - FIRST;
    const int line = LINES_LEFT ? warp * 16 + lane % 16 : (PRODUCT + lane / 16) * 8 + lane % 8;
    const int chunk = LINES_LEFT ? PRODUCT + lane / 16 : warp * 2 + lane / 8 % 2;
    const int place = place_in_block(line, chunk);
    u32 added[4] = {};
    if (has_residual) {
      if constexpr (LINES_LEFT)
        load_matrices(added, from + place);
      else
        load_matrices_transposed(added, from + place);
    }
    u32 words[4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float four[4];
      if (half == 0)
        sums.template take<L, R>(four);
      else
        sums.template take<L, R + 1>(four);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        T pair[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int of_row =
              PIXELS_LEFT ? (PRODUCT + half) * 8 + lane % 4 * 2 + j : warp * 16 + lane / 4 + i * 8;
          const float sum = MAY_LACK_TAPS && !any ? 0.0f : four[i * 2 + j];
          const u32 word = added[half * 2 + i];
          pair[j] = epilogue_.finish(sum, bias_of(row + of_row),
                                     to_compute(j == 0 ? low_of<T>(word) : high_of<T>(word)));
        }
        words[half * 2 + i] = packed(pair[0], pair[1]);
      }
    }
    if constexpr (LINES_LEFT)
      store_matrices(slab + place, words);
    else
      store_matrices_transposed(slab + place, words);
    if constexpr (R + 2 < END)
      put_pairs<T, L, R + 2, FIRST, END>(sums, slab, from, row, any, has_residual);
  }

  device_inline compute_t bias_of(int row) const {
    if (!BIAS) return 0;
    return row < GROUPS * ROWS ? epilogue_.bias_of(row) : compute_t(0);
  }
};
