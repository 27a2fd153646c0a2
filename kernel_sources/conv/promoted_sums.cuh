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

// Row and column of the thread's that sum c of product (l, r) is.
device_inline constexpr int sum_row(int l, int r, int c) {
  return COLUMNS_LEFT ? 2 * r + c % 2 : 2 * l + c / 2;
}
device_inline constexpr int sum_column(int l, int r, int c) {
  return COLUMNS_LEFT ? 2 * l + c / 2 : r / VECTOR_N * RUN_N + c % 2 * VECTOR_N + r % VECTOR_N;
}

// Where sums wait with PROMOTE_LOCAL; a variable of its own, so that it alone lies in memory.
struct HeldSums {
  struct alignas(4 * sizeof(compute_t)) Four {
    compute_t sum[4];
  };
  Four four[PROMOTE_LOCAL ? PRODUCTS_LEFT * PRODUCTS_RIGHT : 1];
};

struct PromotedSums {
  // Whether those of before the last promotion are in registers.
  static constexpr bool TOTALS = PROMOTE > 0 && !PROMOTE_LOCAL;
  compute_t part[PRODUCTS_LEFT][PRODUCTS_RIGHT][4];  // since the last promotion
  compute_t total[TOTALS ? PRODUCTS_LEFT : 1][TOTALS ? PRODUCTS_RIGHT : 1][4];
  HeldSums* held;
  bool promoted = false;  // something is held

  // memory: with PROMOTE_LOCAL.
  device_inline explicit PromotedSums(HeldSums* memory = nullptr) : held(memory) {
    if constexpr (TOTALS) clear(total);
    clear(part);
  }

  // The sum of row i and column j of the thread's.
  device_inline compute_t& at(int i, int j) {
    if constexpr (TOTALS)
      return in_products(total, i, j);
    else
      return in_products(part, i, j);
  }

  // At the end of a run of PROMOTE steps, or of all; more: steps follow.
  device_inline void end_run(bool more) {
    if constexpr (TOTALS)
      promote();
    else if (PROMOTE > 0)
      promote_held(more);
  }

 private:
  template <int LEFT, int RIGHT>
  device_inline static compute_t& in_products(compute_t (&products)[LEFT][RIGHT][4], int i, int j) {
    const int run = j / RUN_N, within = j % RUN_N;
    return products[i / 2][run * VECTOR_N + within % VECTOR_N][i % 2 * 2 + within / VECTOR_N];
  }
  template <int LEFT, int RIGHT>
  device_inline static void clear(compute_t (&products)[LEFT][RIGHT][4]) {
#pragma unroll
    for (int i = 0; i < LEFT; ++i)
#pragma unroll
      for (int j = 0; j < RIGHT; ++j)
#pragma unroll
        for (int c = 0; c < 4; ++c) products[i][j][c] = 0;
  }
  device_inline void promote() {
#pragma unroll
    for (int i = 0; i < PRODUCTS_LEFT; ++i)
#pragma unroll
      for (int j = 0; j < PRODUCTS_RIGHT; ++j)
#pragma unroll
        for (int c = 0; c < 4; ++c) total[i][j][c] += part[i][j][c];
    clear(part);
  }
  // What is held comes to part, and goes back if `more` is to come.
  device_inline void promote_held(bool more) {
    // An offset that the compiler does not know keeps these in memory, rather than in registers.
    HeldSums::Four* const at = held->four + from_here(0);
    if (promoted) {
#pragma unroll
      for (int i = 0; i < PRODUCTS_LEFT; ++i)
#pragma unroll
        for (int j = 0; j < PRODUCTS_RIGHT; ++j) {
          const HeldSums::Four four = at[i * PRODUCTS_RIGHT + j];
#pragma unroll
          for (int c = 0; c < 4; ++c) part[i][j][c] += four.sum[c];
        }
    }
    if (!more) return;
#pragma unroll
    for (int i = 0; i < PRODUCTS_LEFT; ++i)
#pragma unroll
      for (int j = 0; j < PRODUCTS_RIGHT; ++j) {
        const compute_t(&four)[4] = part[i][j];
        at[i * PRODUCTS_RIGHT + j] = {{four[0], four[1], four[2], four[3]}};
      }
    clear(part);
    promoted = true;
  }
};

// So many steps of STEP_FRAGMENTS fragments each, which take turns in two sets of registers:
// step(the set of the first). Promotions stay out of the innermost loop, where they would be in the
// products' way; settle(): products are to be done.
template <int STEP_FRAGMENTS, class Sums, class Step, class Settle>
device_inline void multiply_in_turns(Sums& sums, int steps, const Step& step,
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
