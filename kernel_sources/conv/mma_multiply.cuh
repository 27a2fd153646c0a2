// The product of a stage on the tensor cores.
//
// Of a 16 x 8 x 8 product lane l, with g = l / 4 and t = l % 4, holds rows g and g + 8 of columns t
// and t + 4 of the left operand, column g of rows t and t + 4 of the right one, and columns 2t and
// 2t + 1 of rows g and g + 8 of the sums. Which row of the tile is called row g is free: a lane
// takes RUN_M rows side by side as rows g, g + 8 of one product, then of the next, and VECTOR_N
// columns as column g of as many products. So it reads 16 bytes at a time, and a thread's sums are
// runs of RUN_N = 2 VECTOR_N columns.
//
// Rows of the operands are PITCH % 32 == 8 words (f32) apart, so that a quarter warp's 16-byte
// reads, of four rows t and two columns g, are free of bank conflicts.
//
// f32 in three products (SPLIT): the tensor cores read but 11 bits of f32, so each operand is the
// sum of itself rounded to 11 bits and of a rest, and rest * rest is left out. They also round sums
// toward zero: every PROMOTE stages the sums go to registers that are added up as f32 should be.
#pragma once

#include "conv/gemm_tile.cuh"
#include "target/mma.cuh"

constexpr int VECTOR_N = RUN_N / 2;
constexpr int PRODUCTS_M = THREAD_M / 2, PRODUCTS_N = THREAD_N / 2;
static_assert(LANES_M == 8 && LANES_N == 4 && RUN_M == VECTOR && VECTOR_N <= VECTOR);

template <int COUNT>
struct alignas(sizeof(compute_t) * COUNT) Words {
  compute_t element[COUNT];
};

// What two products share an operand's bits as.
struct Parts {
  compute_t whole, rest;
};
device_inline Parts split(compute_t x) {
  const compute_t whole = tf32_round(x);
  return {whole, x - tf32_of(whole)};
}
// Where infinities are about: cut off, for rounding may end in infinity; no rest of what is not
// finite, for infinity times the rest of a number that has none would be NaN.
device_inline Parts split_guarded(compute_t x) {
  const compute_t rest = x - tf32_of(x);
  return {x, rest == rest ? rest : compute_t(0)};
}
device_inline compute_t finite_or_zero(compute_t x) {
  return x - x == compute_t(0) ? x : compute_t(0);
}

struct Operands {
  compute_t m[PRODUCTS_M][4], n[PRODUCTS_N][2];

  // The stage's rows k to k + 7. tile_m and tile_n: at row t, this lane's first row and column.
  device_inline void load(const compute_t* tile_m, const compute_t* tile_n, int k) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
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

  template <class Split>
  device_inline void split_into(Operands& rest, const Split& split_one) {
#pragma unroll
    for (int i = 0; i < PRODUCTS_M; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const Parts parts = split_one(m[i][j]);
        m[i][j] = parts.whole, rest.m[i][j] = parts.rest;
      }
#pragma unroll
    for (int i = 0; i < PRODUCTS_N; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const Parts parts = split_one(n[i][j]);
        n[i][j] = parts.whole, rest.n[i][j] = parts.rest;
      }
  }
  device_inline void drop_infinities() {
#pragma unroll
    for (int i = 0; i < PRODUCTS_M; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) m[i][j] = finite_or_zero(m[i][j]);
#pragma unroll
    for (int i = 0; i < PRODUCTS_N; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) n[i][j] = finite_or_zero(n[i][j]);
  }
};

struct Accumulator : Sums {
  compute_t part[PRODUCTS_M][PRODUCTS_N][4];  // since the last promotion
  int stages_in_part = 0;
  bool guarded = false;  // adding up once more, infinities apart

  device_inline Accumulator() { clear_part(); }

  device_inline void clear_part() {
#pragma unroll
    for (int i = 0; i < PRODUCTS_M; ++i)
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j)
#pragma unroll
        for (int c = 0; c < 4; ++c) part[i][j][c] = 0;
  }

  device_inline void multiply(const compute_t (&m)[PRODUCTS_M][4],
                              const compute_t (&n)[PRODUCTS_N][2]) {
#pragma unroll
    for (int i = 0; i < PRODUCTS_M; ++i)
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j) mma_16x8x8(part[i][j], m[i], n[j]);
  }

  // Adds one stage.
  device_inline void multiply_tile(const compute_t* tile_m, const compute_t* tile_n,
                                   const Position& position) {
    const int lane = thread_x() % 32, g = lane / LANES_N, t = lane % LANES_N;
    tile_m += position.m + t * PITCH_M;
    tile_n += position.n - t * RUN_N + g * VECTOR_N + t * PITCH_N;
#pragma unroll
    for (int k = 0; k < TILE_K; k += 8) {
      Operands whole;
      whole.load(tile_m, tile_n, k);
      if constexpr (SPLIT) {
        Operands rest;
        if (guarded)
          whole.split_into(rest, split_guarded);
        else
          whole.split_into(rest, split);
        multiply(whole.m, whole.n);
        if (guarded) whole.drop_infinities();
        multiply(rest.m, whole.n);
        multiply(whole.m, rest.n);
      } else {
        multiply(whole.m, whole.n);
      }
    }
    if constexpr (PROMOTE > 0) {
      if (++stages_in_part == PROMOTE) promote();
    }
  }

  device_inline void promote() {
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) {
        const int run = j / RUN_N, within = j % RUN_N;
        const int product = run * VECTOR_N + within % VECTOR_N;
        sum[i][j] += part[i / 2][product][i % 2 * 2 + within / VECTOR_N];
      }
    clear_part();
    stages_in_part = 0;
  }

  // Once all stages are added; whether the block must add them all up once more: where an infinity
  // met the rest of a number, the sum is NaN that need not be. `shared` is free memory.
  device_inline bool finish(compute_t* shared) {
    promote();
    if (!SPLIT || guarded) return false;
    bool nan = false;
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) nan = nan || sum[i][j] != sum[i][j];
    block_barrier();
    if (thread_x() == 0) *shared = 0;
    block_barrier();
    if (nan) *shared = 1;
    block_barrier();
    guarded = *shared != compute_t(0);
    block_barrier();
    if (guarded) clear();
    return guarded;
  }
};
