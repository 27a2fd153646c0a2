// How a warpgroup's sums become output: 64 rows of some pixels at a time through a slab of shared
// memory, from which the copy engine stores them while the warpgroup goes on.
#pragma once

#include "conv/dense/tile.cuh"
#include "conv/store/epilogue.cuh"
#include "target/bulk_copy.cuh"
#include "target/matrix_store.cuh"
#include "target/mma.cuh"
#include "target/sum_registers.cuh"
#include "target/warpgroup.cuh"

using Sums = SumRegisters<float, LEFT, BLOCK_RIGHT / 8, false, PROMOTE_LOCAL>;

device_inline u32 packed(element_t low, element_t high) {
  return static_cast<u32>(low.bits) | static_cast<u32>(high.bits) << 16;
}
device_inline element_t low_of(u32 word) { return {static_cast<unsigned short>(word)}; }
device_inline element_t high_of(u32 word) { return {static_cast<unsigned short>(word >> 16)}; }

// A warpgroup's way out. All its threads take part in everything.
class Store {
  const Params& params_;
  Epilogue epilogue_;
  unsigned char* slabs_;
  Mbarrier& landed_;  // what beta scales
  u32 group_, parity_ = 0;
  int slab_ = 0;

 public:
  device_inline Store(const Params& params, unsigned char* memory, Barriers& barriers, u32 group)
      : params_(params),
        slabs_(memory + SLABS_AT + group * (SLABS * SLAB_BYTES)),
        landed_(barriers.residual[group]),
        group_(group) {
    epilogue_.bias = static_cast<const element_t*>(params.common.bias);
    epilogue_.alpha = static_cast<compute_t>(params.common.alpha);
    epilogue_.beta = static_cast<compute_t>(params.common.beta);
    epilogue_.coef = coefficients_of<compute_t>(params.common);
  }

  device_inline void store(const Sums& sums, const Tile& tile) { store_left<0>(sums, tile); }
  // Before the block exits.
  device_inline void finish() {
    if (thread_x() % 128 == 0) bulk_wait_read<0>();
  }

 private:
  template <int L>
  device_inline void store_left(const Sums& sums, const Tile& tile) {
    const int left = static_cast<int>(group_) * GROUP_ROWS + L * 64;
    if constexpr (PIXELS_LEFT)
      store_slabs<L, 0>(sums, tile, tile.first_pixel + left);
    else
      store_slab<L, 0, BLOCK_RIGHT / 8>(sums, tile, tile.first_row + left, tile.first_pixel);
    if constexpr (L + 1 < LEFT) store_left<L + 1>(sums, tile);
  }
  template <int L, int FIRST>
  device_inline void store_slabs(const Sums& sums, const Tile& tile, u32 pixel) {
    store_slab<L, FIRST, FIRST + 8>(sums, tile, tile.first_row + FIRST * 8, pixel);
    if constexpr (FIRST + 8 < BLOCK_RIGHT / 8) store_slabs<L, FIRST + 8>(sums, tile, pixel);
  }

  // The products from FIRST to END of left operand L, 64 rows from `row` on of the pixels from
  // `pixel` on.
  template <int L, int FIRST, int END>
  device_inline void store_slab(const Sums& sums, const Tile& tile, int row, u32 pixel) {
    unsigned char* const slab = slabs_ + slab_ * SLAB_BYTES;
    if (++slab_ == SLABS) slab_ = 0;
    const bool first_thread = thread_x() % 128 == 0;
    const bool has_residual = epilogue_.beta != 0;
    if (first_thread) {
      bulk_wait_read<SLABS - 1>();  // the slab's last store
      if (has_residual) load_residual(slab, tile, row, pixel);
    }
    if (has_residual) {
      landed_.wait(parity_);
      parity_ ^= 1;
    } else {
      named_barrier<128>(1 + group_);
    }
    put<L, FIRST, FIRST, END>(sums, slab, row, tile.steps() > 0, has_residual);
    show_to_copy_engine();
    named_barrier<128>(1 + group_);
    if (first_thread) {
      const TensorMap& out = params_.maps[tile.phase * 3 + 2];
      if constexpr (OUT_IN_LINE) {
        const int at[2] = {row, static_cast<int>(pixel)};
        bulk_store(out, slab, at);
      } else {
        const PixelPlace place(pixel, tile.phase);
        const int at[4] = {row, place.q, place.p, place.n};
        bulk_store_im2col(out, slab, at);
      }
      bulk_commit();
    }
  }

  // By one thread.
  device_inline void load_residual(unsigned char* slab, const Tile& tile, int row, u32 pixel) {
    const TensorMap& map = params_.maps[RESIDUAL ? PHASES * 3 : tile.phase * 3 + 2];
    landed_.arrive_and_expect(static_cast<u32>(SLAB_PIXELS * LINE_BYTES));
    if constexpr (RESIDUAL ? Z_IN_LINE : OUT_IN_LINE) {
      const int at[2] = {row, static_cast<int>(pixel)};
      bulk_load(slab, map, landed_, at);
    } else {
      const PixelPlace place(pixel, tile.phase);
      const int at[4] = {row, place.q, place.p, place.n};
      const int tap[2] = {0, 0};
      bulk_load_im2col(slab, map, landed_, at, tap);
    }
  }

  // Two products, four matrices of 8 x 8 in the slab, whose lines are pixels: a lane's place is
  // that of line l % 8 of matrix l / 8.
  template <int L, int R, int FIRST, int END>
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
