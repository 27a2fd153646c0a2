// Operand A of wgmma in registers, where 3xTF32 splits it, and its products with operand B in
// shared memory.
#pragma once

#include "conv/mma/warpgroup_sums.cuh"
#include "target/wgmma.cuh"

// A lane's words of operand A over 32 bytes of the reduction.
struct LeftFragments {
  u32 hi[PRODUCTS_LEFT][4], lo[SPLIT ? PRODUCTS_LEFT : 1][4];

  // Word `half` of the two that the lane has of column j.
  device_inline u32& word(int j, int half) { return hi[j / 2][half * 2 + j % 2]; }
  // Splits the fragment after it was read.
  device_inline void split_tf32() {
    if constexpr (SPLIT) {
#pragma unroll
      for (int i = 0; i < PRODUCTS_LEFT; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const HiLo parts = split(float_of(hi[i][c]));
          hi[i][c] = bits_of(parts.hi), lo[i][c] = bits_of(parts.lo);
        }
    }
  }
};

using LeftProducts = WarpgroupProducts<element_t, PRODUCTS_LEFT, PRODUCTS_RIGHT>;

// Starts the products of operands A from number L on.
template <bool RIGHT_INNER, int L>
device_inline void multiply_from(LeftProducts& products, WarpgroupSums& sums,
                                 const LeftFragments& left, SharedMatrix right, int lo) {
  auto& into = sums.registers;
  if constexpr (SPLIT) {
    products.template multiply<RIGHT_INNER, L>(into, left.lo[L], right, !sums.fresh);
    products.template multiply<RIGHT_INNER, L>(into, left.hi[L], right.moved(lo));
  }
  products.template multiply<RIGHT_INNER, L>(into, left.hi[L], right, SPLIT || !sums.fresh);
  if constexpr (L + 1 < PRODUCTS_LEFT)
    multiply_from<RIGHT_INNER, L + 1>(products, sums, left, right, lo);
}

// Starts a fragment's products as one group. lo: bytes from operand B's hi parts to its lo parts.
template <bool RIGHT_INNER>
device_inline void start_products(LeftProducts& products, WarpgroupSums& sums,
                                  const LeftFragments& left, SharedMatrix right, int lo) {
  products.begin();
  multiply_from<RIGHT_INNER, 0>(products, sums, left, right, lo);
  products.commit();
  sums.fresh = false;
}
