// Multiplies a stage by mma.sync.
//
// In an m16n8k8 product, lane l, with g = l / 4 and t = l % 4, holds rows g and g + 8 of columns t
// and t + 4 of A, column g of rows t and t + 4 of B, and columns 2t and 2t + 1 of rows g and g + 8
// of the accumulators. In an m16n8k4 product of f64 there is no column or row t + 4. Which row of
// the tile is row g of a product may be chosen freely. Here a lane takes RUN_M contiguous rows as
// rows g and g + 8 of one product, then of the next, and VECTOR_N contiguous columns as column g of
// as many products. So it reads up to 16 bytes at a time, and a thread's sums are runs of RUN_N = 2
// VECTOR_N columns.
//
// Rows of the operands are PITCH % 32 == 8 words (f32) apart, so that a quarter warp's 16-byte
// reads, of four rows t and two columns g, have no bank conflicts.
#pragma once

#include "conv/mma/gemm_tile.cuh"
#include "conv/mma/promoted_sums.cuh"
#include "target/mma.cuh"

static_assert(LANES_M == 8 && LANES_N == 4 && RUN_M == VECTOR && VECTOR_N <= VECTOR);

template <int COUNT>
struct alignas(sizeof(compute_t) * COUNT) Words {
  compute_t element[COUNT];
};

struct StageOperands : Operands {
  // Loads PRODUCT_K rows of a stage from row k on. tile_m and tile_n are the addresses of this
  // lane's first row and column of the tile, in row t of the stage.
  device_inline void load(const compute_t* tile_m, const compute_t* tile_n, int k) {
#pragma unroll
    for (int half = 0; half < LANE_N; ++half) {
      const compute_t* const row_m = tile_m + (k + 4 * half) * PITCH_M;
      const compute_t* const row_n = tile_n + (k + 4 * half) * PITCH_N;
#pragma unroll
      for (int i = 0; i < THREAD_M; i += RUN_M) {
        const auto run = *reinterpret_cast<const Words<RUN_M>*>(row_m + row_step(i));
#pragma unroll
        for (int j = 0; j < RUN_M; ++j) m[(i + j) / 2][2 * half + (i + j) % 2] = run.element[j];
      }
#pragma unroll
      for (int i = 0; i < PRODUCTS_N; i += VECTOR_N) {
        const auto run =
            *reinterpret_cast<const Words<VECTOR_N>*>(row_n + i / VECTOR_N * (8 * VECTOR_N));
#pragma unroll
        for (int j = 0; j < VECTOR_N; ++j) n[i + j][half] = run.element[j];
      }
    }
  }
};

struct Accumulator : PromotedSums<false> {
  // f64 products take so long that the two warps of a scheduler do not hide each other's loads, so
  // each warp issues its loads among the first half of a stage's products.
  static constexpr int LOAD_SHARES = PRODUCT_K == 4 ? TILE_K / PRODUCT_K * PRODUCTS_M / 2 : 1;

  int steps_in_part = 0;

  // Multiplies rows I and the ones after them, and calls between(i) after each.
  template <int I, class Between>
  device_inline void multiply(const compute_t (&m)[PRODUCTS_M][LANE_M],
                              const compute_t (&n)[PRODUCTS_N][LANE_N], const Between& between) {
    if constexpr (PRODUCT_K == 4)
      mma_16x8x4<I>(registers, m[I], n);
    else
      mma_16x8x8<I>(registers, m[I], n);
    between(I);
    if constexpr (I + 1 < PRODUCTS_M) multiply<I + 1>(m, n, between);
  }
  template <class Between>
  device_inline void multiply(Operands& whole, const Between& between) {
    if constexpr (SPLIT) {
      Operands rest;
      whole.split_into(rest);
      multiply<0>(whole.m, whole.n, between);
      multiply<0>(rest.m, whole.n, between);
      multiply<0>(whole.m, rest.n, between);
    } else {
      multiply<0>(whole.m, whole.n, between);
    }
  }

  // Adds the products of one stage; `last` tells whether it is the last one.
  template <class Between>
  device_inline void multiply_tile(const compute_t* tile_m, const compute_t* tile_n,
                                   const Position& position, bool last, const Between& between) {
    const int lane = thread_x() % 32, g = lane / LANES_N, t = lane % LANES_N;
    tile_m += position.m + t * PITCH_M;
    tile_n += position.n - t * RUN_N + g * VECTOR_N + t * PITCH_N;
    // Two products at a time overlap with each other's operands; more would only lengthen the code.
    constexpr int AT_ONCE = 16 / PRODUCT_K;
#pragma unroll AT_ONCE
    for (int k = 0; k < TILE_K; k += PRODUCT_K) {
      StageOperands operands;
      operands.load(tile_m, tile_n, k);
      multiply(operands, [&](int row) {
        const int share = k / PRODUCT_K * PRODUCTS_M + row;
        if (LOAD_SHARES > 1 && share < LOAD_SHARES) between(share);
      });
    }
    if (PROMOTE > 0 && (++steps_in_part == PROMOTE || last)) end_run(!last), steps_in_part = 0;
  }
};
