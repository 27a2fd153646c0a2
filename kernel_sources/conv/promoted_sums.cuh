// A thread's sums on the tensor cores, which round toward zero: every PROMOTE steps what has come
// together goes to sums that are added up as f32 should be (0: at the end alone). Those wait in
// registers or, with PROMOTE_LOCAL, where that happens seldom, in local memory.
#pragma once

#include "conv/tf32_split.cuh"

static_assert(!SPLIT || !PROMOTE_LOCAL);

// Products are PRODUCTS_LEFT x PRODUCTS_RIGHT, and a warp's lanes 8 x 4 in each. Their left operand
// is of the tile's rows or, where lanes are 8 along the columns, of those.
constexpr bool COLUMNS_LEFT = LANES_N == 8;
constexpr int PRODUCTS_LEFT = COLUMNS_LEFT ? PRODUCTS_N : PRODUCTS_M;
constexpr int PRODUCTS_RIGHT = COLUMNS_LEFT ? PRODUCTS_M : PRODUCTS_N;

struct PromotedSums : Sums {
  compute_t part[PRODUCTS_LEFT][PRODUCTS_RIGHT][4];  // since the last promotion
  volatile compute_t held[PROMOTE_LOCAL ? THREAD_M : 1][PROMOTE_LOCAL ? THREAD_N : 1];
  bool promoted = false;  // held has been written
  bool fresh;             // part is nothing yet

  device_inline PromotedSums() { clear_part(); }

  // Products of warpgroups take the place of what is nothing yet; others are added to it.
  static constexpr bool REPLACED = COLUMNS_LEFT;
  device_inline void clear_part() {
    fresh = true;
    if constexpr (!REPLACED) {
#pragma unroll
      for (int i = 0; i < PRODUCTS_LEFT; ++i)
#pragma unroll
        for (int j = 0; j < PRODUCTS_RIGHT; ++j)
#pragma unroll
          for (int c = 0; c < 4; ++c) part[i][j][c] = 0;
    }
  }
  device_inline void clear_held() {
    if constexpr (PROMOTE_LOCAL) {
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) held[i][j] = 0;
    }
  }

  device_inline compute_t of_part(int i, int j) const {
    if constexpr (COLUMNS_LEFT) {
      const int run = i / RUN_M, within = i % RUN_M;
      return part[j / 2][run * (RUN_M / 2) + within / 2][j % 2 * 2 + within % 2];
    } else {
      const int run = j / RUN_N, within = j % RUN_N;
      return part[i / 2][run * VECTOR_N + within % VECTOR_N][i % 2 * 2 + within / VECTOR_N];
    }
  }
  device_inline void promote() {
    if (!promoted) clear_held();
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) {
        if constexpr (PROMOTE_LOCAL)
          held[i][j] = held[i][j] + of_part(i, j);
        else
          sum[i][j] += of_part(i, j);
      }
    clear_part();
    promoted = true;
  }

  device_inline compute_t rest_of_part(int i, int j) const {
    return REPLACED && fresh ? compute_t(0) : of_part(i, j);
  }
  // At the end of a run of PROMOTE steps, or of all; more: steps follow.
  device_inline void end_run(bool more) {
    if (PROMOTE > 0 && (more || !PROMOTE_LOCAL)) promote();
  }
  // Once all runs have ended.
  device_inline void finish() {
    if constexpr (PROMOTE > 0 && !PROMOTE_LOCAL) return;
    if (PROMOTE_LOCAL && promoted) {
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) sum[i][j] = held[i][j] + rest_of_part(i, j);
    } else {
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) sum[i][j] = rest_of_part(i, j);
    }
  }
};

// So many steps of STEP_FRAGMENTS fragments each, which take turns in two sets of registers:
// step(the set of the first). Promotions stay out of the innermost loop, where they would be in the
// products' way; settle(): products are to be done.
template <int STEP_FRAGMENTS, class Step, class Settle>
device_inline void multiply_in_turns(PromotedSums& sums, int steps, const Step& step,
                                     const Settle& settle) {
  static_assert((STEP_FRAGMENTS * PROMOTE) % 2 == 0, "fragments take turns");
  int k = 0;
#pragma unroll 1
  while (k < steps) {
    const int stop = PROMOTE > 0 && k + PROMOTE < steps ? k + PROMOTE : steps;
#pragma unroll 1
    for (;;) {
      step(0);
      if (++k == stop) break;
      if (STEP_FRAGMENTS % 2 == 0) continue;
      step(1);
      if (++k == stop) break;
    }
    settle();
    sums.end_run(k < steps);
  }
}
