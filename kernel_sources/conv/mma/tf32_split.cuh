// Operands of m16n8k8 products (f64: m16n8k4) in registers, and 3xTF32 (SPLIT).
#pragma once

#include "conv/geometry/tile_sums.cuh"
#include "conv/mma/tf32_parts.cuh"

// A thread's accumulators belong to PRODUCTS_M x PRODUCTS_N products. VECTOR_N products share a run
// of the thread's columns.
constexpr int VECTOR_N = RUN_N > 1 ? RUN_N / 2 : 1;
constexpr int PRODUCTS_M = THREAD_M / 2, PRODUCTS_N = THREAD_N / 2;

constexpr int PRODUCT_K = sizeof(compute_t) == 8 ? 4 : 8;
constexpr int LANE_M = PRODUCT_K / 2, LANE_N = PRODUCT_K / 4;  // elements that a lane holds

struct Operands {
  compute_t m[PRODUCTS_M][LANE_M], n[PRODUCTS_N][LANE_N];

  device_inline void split_into(Operands& lo) {
#pragma unroll
    for (int i = 0; i < PRODUCTS_M; ++i)
#pragma unroll
      for (int j = 0; j < LANE_M; ++j) {
        const HiLo parts = split(m[i][j]);
        m[i][j] = parts.hi, lo.m[i][j] = parts.lo;
      }
#pragma unroll
    for (int i = 0; i < PRODUCTS_N; ++i)
#pragma unroll
      for (int j = 0; j < LANE_N; ++j) {
        const HiLo parts = split(n[i][j]);
        n[i][j] = parts.hi, lo.n[i][j] = parts.lo;
      }
  }
};
