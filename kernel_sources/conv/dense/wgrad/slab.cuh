// Stores a warpgroup's sums to a dw of 16 bits through slabs of shared memory, which TMA stores
// while the warpgroup goes on. The dw that beta scales is loaded into a slab before.
//
// A slab has 64 lines, one for each filter, of a block of columns: LINE_CHANNELS channels of a tap.
#pragma once

#include "conv/dense/pairs.cuh"
#include "conv/dense/wgrad/products.cuh"
#include "target/matrix_store.cuh"
#include "target/mma.cuh"
#include "target/warpgroup.cuh"

constexpr int RESULT_SLAB_BYTES = 64 * LINE_BYTES;

// The stores of a warpgroup. All its threads call all functions.
class ResultSlabs {
  const TensorMap& dw_;
  unsigned char* slabs_;
  Mbarrier& landed_;  // barrier of the loads of what beta scales
  compute_t alpha_, beta_;
  u32 group_, parity_ = 0;
  int slab_ = 0;

 public:
  // slabs: the warpgroup's RESULT_SLABS slabs; landed: a barrier of one arrival, for loads of what
  // beta scales.
  device_inline ResultSlabs(const DenseWgradParams& params, const TensorMap& dw,
                            unsigned char* slabs, Mbarrier& landed, u32 group)
      : dw_(dw),
        slabs_(slabs),
        landed_(landed),
        alpha_(static_cast<compute_t>(params.alpha)),
        beta_(static_cast<compute_t>(params.beta)),
        group_(group) {}

  // Stores the sums of operands A from number L on.
  template <int L = 0>
  device_inline void store(const Sums& sums, const WgradTile& tile) {
    store_blocks<L, 0>(sums, tile, tile.row + static_cast<int>(group_) * GROUP_ROWS + L * 64);
    if constexpr (L + 1 < LEFT) store<L + 1>(sums, tile);
  }
  // Must be called before the block exits.
  device_inline void finish() {
    if (thread_x() % 128 == 0) bulk_wait_read<0>();
  }

 private:
  template <int L, int BLOCK>
  device_inline void store_blocks(const Sums& sums, const WgradTile& tile, int row) {
    if (tile.block + BLOCK < COLUMN_BLOCKS && row < ROWS)
      store_block<L, BLOCK>(sums, ColumnBlock(tile.block + BLOCK), row);
    if constexpr (BLOCK + 1 < BLOCK_COLUMNS) store_blocks<L, BLOCK + 1>(sums, tile, row);
  }

  template <int L, int BLOCK>
  device_inline void store_block(const Sums& sums, const ColumnBlock& columns, int row) {
    unsigned char* const slab = slabs_ + slab_ * RESULT_SLAB_BYTES;
    if (++slab_ == RESULT_SLABS) slab_ = 0;
    const bool first_thread = thread_x() % 128 == 0;
    int at[SPACE + 2] = {columns.channel, columns.s, columns.r};
    if constexpr (SPACE == 3) at[3] = columns.t;
    at[SPACE + 1] = row;
    const bool adds = beta_ != compute_t(0);
    if (first_thread) {
      bulk_wait_read<RESULT_SLABS - 1>();  // until the slab's last store has read it
      if (adds) {
        landed_.arrive_and_expect(static_cast<u32>(RESULT_SLAB_BYTES));
        bulk_load(slab, dw_, landed_, at);
      }
    }
    if (adds) {
      landed_.wait(parity_);
      parity_ ^= 1;
    } else {
      named_barrier<128>(1 + group_);
    }
    put<L, BLOCK * PRODUCTS_A_BLOCK, BLOCK * PRODUCTS_A_BLOCK>(sums, slab, adds);
    show_to_copy_engine();
    named_barrier<128>(1 + group_);
    if (first_thread) {
      bulk_store(dw_, slab, at);
      bulk_commit();
    }
  }

  // Writes products R and R + 1 of those from FIRST on as four 8x8 matrices (stmatrix) to the
  // swizzled slab. Lane l gives the address of line l % 8 of matrix l / 8.
  template <int L, int R, int FIRST>
  device_inline void put(const Sums& sums, unsigned char* slab, bool adds) {
    const int lane = static_cast<int>(thread_x() % 32),
              warp = static_cast<int>(thread_x() / 32 % 4);
    const int line = warp * 16 + lane % 16, chunk = R - FIRST + lane / 16;
    unsigned char* const place = slab + line * LINE_BYTES + (chunk ^ line % 8) * 16;
    u32 added[4] = {};
    if (adds) load_matrices(added, place);
    float sum[2][4];
    sums.template take<L, R>(sum[0]);
    sums.template take<L, R + 1>(sum[1]);
    u32 words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      compute_t low = alpha_ * sum[i / 2][i % 2 * 2], high = alpha_ * sum[i / 2][i % 2 * 2 + 1];
      if (adds) {
        low += beta_ * to_compute(low_of<element_t>(added[i]));
        high += beta_ * to_compute(high_of<element_t>(added[i]));
      }
      words[i] = packed(from_compute<element_t>(low), from_compute<element_t>(high));
    }
    store_matrices(place, words);
    if constexpr (R + 2 < FIRST + PRODUCTS_A_BLOCK) put<L, R + 2, FIRST>(sums, slab, adds);
  }
};
