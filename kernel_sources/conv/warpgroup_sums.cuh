// A thread's sums of products by warpgroups, promoted as promoted_sums.cuh says.
#pragma once

#include "conv/promoted_sums.cuh"
#include "conv/tile_sums.cuh"
#include "target/sum_registers.cuh"

// Where a sum lies in an array of the thread's.
struct ThreadPlace {
  device_inline static constexpr int of(int l, int r, int c) {
    return sum_row(l, r, c) * THREAD_N + sum_column(l, r, c);
  }
};

struct WarpgroupSums {
  static constexpr bool TOTALS = PROMOTE > 0 && !PROMOTE_LOCAL;
  static_assert(STORED_SUMS[0] == (TOTALS ? 't' : 's'));
  // A run's first products take the place of its sums. Where runs are long and pixels lie in shared
  // memory, zeros cost less than the question whether products are the first.
  static constexpr bool REPLACED = COLUMNS_LEFT || SPLIT;

  SumRegisters<PRODUCTS_LEFT, PRODUCTS_RIGHT, TOTALS, PROMOTE_LOCAL> registers;
  bool promoted = false;  // something is held
  bool fresh;             // sums are nothing yet: products are to take their place

  // The first thing that a kernel does.
  device_inline WarpgroupSums() { registers.declare(); }
  // Before the products of a tile.
  device_inline void start() {
    promoted = false;
    if constexpr (TOTALS) registers.clear_totals();
    start_run();
  }

  // At the end of a run of PROMOTE steps, or of all; more: steps follow.
  device_inline void end_run(bool more) {
    if constexpr (TOTALS) {
      registers.add_to_totals();
      start_run();
    } else if constexpr (PROMOTE > 0) {
      // What is held comes to the sums at hand, and goes back if there is more to come.
      if (promoted) registers.add_held();
      if (!more) return;
      registers.hold();
      promoted = true;
      start_run();
    }
  }
  // Once all runs have ended, where there may have been none.
  device_inline void finish() {
    if (!TOTALS && REPLACED && fresh) registers.clear();
  }

  // In the end. A template, so that it costs nothing where sums go through shared memory.
  template <class Place = ThreadPlace>
  device_inline ThreadSums values() const {
    ThreadSums sums;
    registers.template read<Place>(sums.sum);
    return sums;
  }

 private:
  device_inline void start_run() {
    fresh = REPLACED;
    if constexpr (!REPLACED) registers.clear();
  }
};

// Right operands of a run are a step apart in a Place (sum_registers.cuh).
constexpr int RIGHT_RUN = COLUMNS_LEFT ? (RUN_M + 1) / 2 : VECTOR_N;
static_assert(COLUMNS_LEFT ? RUN_N <= 2 : RUN_M <= 2 && RUN_N == 2 * VECTOR_N);

// Of an exchange of sums, by line (tile_sums.cuh).
struct ExchangePlace {
  static constexpr int RUN = RIGHT_RUN;
  device_inline static constexpr int line(int l, int r, int c) {
    return LINES_ALONG_M ? sum_column(l, r, c) : sum_row(l, r, c);
  }
  device_inline static constexpr int of(int l, int r, int c) {
    const int in_line = LINES_ALONG_M ? sum_row(l, r, c) : sum_column(l, r, c);
    return exchange_place(line(l, r, c), in_line);
  }
};
template <int COUNT>
device_inline void put_lines(WarpgroupSums& sums, u32 line, compute_t* exchange) {
  if constexpr (COUNT < LINES)
    sums.registers.put_lines<ExchangePlace, COUNT>(exchange, line);
  else
    sums.registers.put<ExchangePlace>(exchange);
}
