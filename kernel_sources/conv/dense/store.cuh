// How a warpgroup's sums become results: 64 rows or columns of 64 at a time through a slab of
// shared memory, from which the copy engine stores them while the warpgroup goes on. What beta
// scales comes to the slab before.
//
// A slab is a line of 64 rows for each of SLAB_PIXELS pixels. PIXELS_LEFT: pixels are rows of the
// left operand; else columns of the right one.
#pragma once

#include "conv/dense/params.h"
#include "conv/store/epilogue.cuh"
#include "target/bulk_copy.cuh"
#include "target/matrix_store.cuh"
#include "target/mma.cuh"
#include "target/warpgroup.cuh"

device_inline u32 packed(element_t low, element_t high) {
  return static_cast<u32>(low.bits) | static_cast<u32>(high.bits) << 16;
}
device_inline element_t low_of(u32 word) { return {static_cast<unsigned short>(word)}; }
device_inline element_t high_of(u32 word) { return {static_cast<unsigned short>(word >> 16)}; }

// A warpgroup's way out. All its threads take part in everything.
class Store {
  Epilogue epilogue_;
  unsigned char* slabs_;
  Mbarrier& landed_;  // what beta scales
  u32 group_, parity_ = 0;
  int slab_ = 0;

 public:
  // slabs: SLABS of the warpgroup's own; landed: a barrier of one arrival, for what beta scales.
  device_inline Store(const DenseParams& params, unsigned char* slabs, Mbarrier& landed, u32 group)
      : slabs_(slabs), landed_(landed), group_(group) {
    epilogue_.bias = static_cast<const element_t*>(params.bias);
    epilogue_.alpha = static_cast<compute_t>(params.alpha);
    epilogue_.beta = static_cast<compute_t>(params.beta);
    epilogue_.coef = coefficients_of<compute_t>(params);
  }

  // The products from FIRST to END of left operand L. place.store(slab) starts the slab's store,
  // place.load(slab, barrier) the load of what beta scales; place.row is that of a line's first
  // element. any: there were products at all, else sums are 0.
  template <int L, int FIRST, int END, class Sums, class Place>
  device_inline void store(const Sums& sums, const Place& place, bool any) {
    unsigned char* const slab = slabs_ + slab_ * SLAB_BYTES;
    if (++slab_ == SLABS) slab_ = 0;
    const bool first_thread = thread_x() % 128 == 0;
    const bool has_residual = epilogue_.beta != 0;
    if (first_thread) {
      bulk_wait_read<SLABS - 1>();  // the slab's last store
      if (has_residual) {
        landed_.arrive_and_expect(static_cast<u32>(SLAB_PIXELS * LINE_BYTES));
        place.load(slab, landed_);
      }
    }
    if (has_residual) {
      landed_.wait(parity_);
      parity_ ^= 1;
    } else {
      named_barrier<128>(1 + group_);
    }
    put<L, FIRST, FIRST, END>(sums, slab, place.row, any, has_residual);
    show_to_copy_engine();
    named_barrier<128>(1 + group_);
    if (first_thread) {
      place.store(slab);
      bulk_commit();
    }
  }
  // Before the block exits.
  device_inline void finish() {
    if (thread_x() % 128 == 0) bulk_wait_read<0>();
  }

 private:
  // Two products, four matrices of 8 x 8 in the slab: a lane's place is that of line l % 8 of
  // matrix l / 8.
  template <int L, int R, int FIRST, int END, class Sums>
  device_inline void put(const Sums& sums, unsigned char* slab, int row, bool any,
                         bool has_residual) {
    const int lane = static_cast<int>(thread_x() % 32),
              warp = static_cast<int>(thread_x() / 32 % 4);
    constexpr int PRODUCT = R - FIRST;
    const int line = PIXELS_LEFT ? warp * 16 + lane % 16 : (PRODUCT + lane / 16) * 8 + lane % 8;
    const int chunk = PIXELS_LEFT ? PRODUCT + lane / 16 : warp * 2 + lane / 8 % 2;
    unsigned char* const place = slab + line * LINE_BYTES + ((chunk ^ line % 8) * 16);
    u32 added[4] = {};
    if (has_residual) {
      if constexpr (PIXELS_LEFT)
        load_matrices(added, place);
      else
        load_matrices_transposed(added, place);
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
        element_t pair[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int of_row =
              PIXELS_LEFT ? (PRODUCT + half) * 8 + lane % 4 * 2 + j : warp * 16 + lane / 4 + i * 8;
          const float sum = MAY_LACK_TAPS && !any ? 0.0f : four[i * 2 + j];
          compute_t add = bias_of(row + of_row);
          if (has_residual) {
            const u32 word = added[half * 2 + i];
            add += epilogue_.beta * to_compute(j == 0 ? low_of(word) : high_of(word));
          }
          pair[j] = epilogue_.finish(sum, add);
        }
        words[half * 2 + i] = packed(pair[0], pair[1]);
      }
    }
    if constexpr (PIXELS_LEFT)
      store_matrices(place, words);
    else
      store_matrices_transposed(place, words);
    if constexpr (R + 2 < END) put<L, R + 2, FIRST, END>(sums, slab, row, any, has_residual);
  }

  device_inline compute_t bias_of(int row) const {
    if constexpr (!BIAS) return 0;
    return row < ROWS ? epilogue_.bias_of(row) : compute_t(0);
  }
};
