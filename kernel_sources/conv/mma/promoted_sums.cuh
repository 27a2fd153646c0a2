// A thread's accumulators on the tensor cores, which round toward zero. Every PROMOTE steps they
// are promoted: added to totals, rounded to nearest (PROMOTE 0: only at the end). Totals are in
// registers or, with PROMOTE_LOCAL, where promotions are rare, in local memory.
#pragma once

#include "conv/mma/tf32_split.cuh"
#include "target/sum_registers.cuh"

static_assert(!SPLIT || !PROMOTE_LOCAL);

// Products are PRODUCTS_LEFT x PRODUCTS_RIGHT, with a warp's lanes 8 x 4 in each. Operand A is the
// tile's rows or, where 8 lanes run along the columns, its columns.
constexpr bool COLUMNS_LEFT = LANES_N == 8;
constexpr int PRODUCTS_LEFT = COLUMNS_LEFT ? PRODUCTS_N : PRODUCTS_M;
constexpr int PRODUCTS_RIGHT = COLUMNS_LEFT ? PRODUCTS_M : PRODUCTS_N;

// The thread's row and column of sum c of product (l, r).
device_inline constexpr int sum_row(int l, int r, int c) {
  return COLUMNS_LEFT ? 2 * r + c % 2 : 2 * l + c / 2;
}
device_inline constexpr int sum_column(int l, int r, int c) {
  return COLUMNS_LEFT ? 2 * l + c / 2 : r / VECTOR_N * RUN_N + c % 2 * VECTOR_N + r % VECTOR_N;
}

// The length of a run of right operands: within a run, their sums are a constant step apart in a
// Place (target/sum_registers.cuh).
constexpr int RIGHT_RUN = COLUMNS_LEFT ? (RUN_M + 1) / 2 : VECTOR_N;

// REPLACED: the first products of a run overwrite the accumulators.
template <bool REPLACED>
struct PromotedSums {
  // Whether totals are in registers.
  static constexpr bool TOTALS = PROMOTE > 0 && !PROMOTE_LOCAL;
  static_assert(STORED_SUMS[0] == (TOTALS ? 't' : 's'));

  SumRegisters<compute_t, PRODUCTS_LEFT, PRODUCTS_RIGHT, TOTALS, PROMOTE_LOCAL> registers;
  bool promoted = false;  // whether there are totals
  bool fresh;             // accumulators are empty: products overwrite them

  // Must be called first in a kernel.
  device_inline PromotedSums() { registers.declare(); }
  // To be called before the products of a tile.
  device_inline void start() {
    promoted = false;
    if constexpr (TOTALS) registers.clear_totals();
    start_run();
  }

  // To be called at the end of a run of PROMOTE steps, or of all steps; more: steps follow.
  device_inline void end_run(bool more) {
    if constexpr (TOTALS) {
      registers.add_to_totals();
      start_run();
    } else if constexpr (PROMOTE > 0) {
      // Adds the totals to the accumulators, and stores them back if there are more steps.
      if (promoted) registers.add_held();
      if (!more) return;
      registers.hold();
      promoted = true;
      start_run();
    }
  }
  // To be called after all runs, of which there may have been none.
  device_inline void finish() {
    if (!TOTALS && REPLACED && fresh) registers.clear();
  }

  // The line of each sum, and its index in the line (tile_sums.cuh).
  struct LinePlace {
    static constexpr int LEFT_RUN = 1, RUN = RIGHT_RUN;
    device_inline static constexpr int line(int l, int r, int c) {
      return LINES_ALONG_M ? sum_column(l, r, c) : sum_row(l, r, c);
    }
    device_inline static constexpr int in_line(int l, int r, int c) {
      return LINES_ALONG_M ? sum_row(l, r, c) : sum_column(l, r, c);
    }
  };

 private:
  device_inline void start_run() {
    fresh = REPLACED;
    if constexpr (!REPLACED) registers.clear();
  }
};

// Runs `steps` steps of STEP_FRAGMENTS fragments, which alternate between two sets of registers:
// calls step(set), where `set` is that of the step's first fragment. Promotions stay out of the
// innermost loop, where they would delay products; settle() waits for products.
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
