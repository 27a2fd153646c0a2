// The product of a stage on the FMA units: a thread holds a row of either operand at a time, VECTOR
// elements an access. A warp is 4 x 8 threads, so that its 16-byte reads of an operand row are free
// of bank conflicts.
#pragma once

#include "conv/gemm_tile.cuh"

static_assert(RUN_M == VECTOR && RUN_N == VECTOR);

struct alignas(16) Run {
  compute_t element[VECTOR];
};

struct Fragment {  // one row of each operand
  compute_t m[THREAD_M], n[THREAD_N];

  device_inline void load(const compute_t* tile_m, const compute_t* tile_n, int k) {
#pragma unroll
    for (int i = 0; i < THREAD_M / VECTOR; ++i) {
      const Run run = *reinterpret_cast<const Run*>(tile_m + k * PITCH_M + row_step(i * VECTOR));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) m[i * VECTOR + j] = run.element[j];
    }
#pragma unroll
    for (int i = 0; i < THREAD_N / VECTOR; ++i) {
      const Run run = *reinterpret_cast<const Run*>(tile_n + k * PITCH_N + column_step(i * VECTOR));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) n[i * VECTOR + j] = run.element[j];
    }
  }
};

struct Accumulator {
  compute_t sum[THREAD_M][THREAD_N];

  device_inline Accumulator() {
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) sum[i][j] = 0;
  }
  device_inline compute_t& at(int i, int j) { return sum[i][j]; }

  device_inline void multiply(const Fragment& fragment) {
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) sum[i][j] += fragment.m[i] * fragment.n[j];
  }

  // Adds one stage. The next row's operands are on their way while one row is multiplied.
  device_inline void multiply_tile(const compute_t* tile_m, const compute_t* tile_n,
                                   const Position& position, bool /*last*/) {
    tile_m += position.m, tile_n += position.n;
    Fragment fragment[2];
    fragment[0].load(tile_m, tile_n, 0);
#pragma unroll
    for (int k = 0; k < TILE_K; ++k) {
      if (k + 1 < TILE_K) fragment[(k + 1) % 2].load(tile_m, tile_n, k + 1);
      multiply(fragment[k % 2]);
    }
  }
};
