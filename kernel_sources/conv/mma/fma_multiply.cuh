// Multiplies a stage on the FMA units. At a time, a thread holds its part of one row of each
// operand, and reads VECTOR elements per access. A warp is 4 x 8 threads, so that its 16-byte reads
// of an operand's row have no bank conflicts.
#pragma once

#include "conv/mma/gemm_tile.cuh"
#include "target/shared_memory.cuh"
#include "target/sum_registers.cuh"

static_assert(RUN_M == VECTOR && RUN_N == VECTOR);

struct alignas(16) Run {
  compute_t element[VECTOR];
};

struct Fragment {  // a thread's part of one row of each operand
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
  static_assert(THREAD_N % 4 == 0);
  static constexpr int LOAD_SHARES = 1;  // all loads are issued before a stage's products

  SumRegisters<compute_t, THREAD_M, THREAD_N / 4, false> registers;

  // A kernel must construct this first (SumRegisters::declare()).
  device_inline Accumulator() { registers.declare(); }
  device_inline void start() { registers.clear(); }

  // Multiplies row I and the rows after it.
  template <int I = 0>
  device_inline void multiply(const Fragment& fragment) {
    registers.template add_products<I>(fragment.m[I], fragment.n);
    if constexpr (I + 1 < THREAD_M) multiply<I + 1>(fragment);
  }

  // Adds one stage. The next row's operands are loaded while one row is multiplied.
  template <class Between>
  device_inline void multiply_tile(const compute_t* tile_m, const compute_t* tile_n,
                                   const Position& position, bool /*last*/, const Between&) {
    tile_m = kept_shared(tile_m + position.m), tile_n = kept_shared(tile_n + position.n);
    Fragment fragment[2];
    fragment[0].load(tile_m, tile_n, 0);
#pragma unroll
    for (int k = 0; k < TILE_K; ++k) {
      if (k + 1 < TILE_K) fragment[(k + 1) % 2].load(tile_m, tile_n, k + 1);
      multiply(fragment[k % 2]);
    }
  }

  // The line of each sum, and its index in the line (tile_sums.cuh).
  struct LinePlace {
    static constexpr int LEFT_RUN = 1, RUN = 1;
    device_inline static constexpr int line(int l, int r, int c) {
      return LINES_ALONG_M ? 4 * r + c : l;
    }
    device_inline static constexpr int in_line(int l, int r, int c) {
      return LINES_ALONG_M ? l : 4 * r + c;
    }
  };
};
