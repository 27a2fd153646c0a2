// The gradient by the statistics of pixels whose rows one block's registers hold: dx and dresidual,
// and what dscale and dbias are sums of. `parts` blocks take sets of rows in turn. A thread has the
// same channels in all of its rows and sums up their g and g (x - mean) s; at last the threads of a
// channel are added up, and each block leaves two numbers a channel for rows_finish.cu.
//
// Shared memory: the exchange of combine_threads(), then a thread's sums [column][thread].
#include "normalization/row.cuh"

constexpr int COLUMNS = UNROLL * NUMBERS;  // channels of a thread
constexpr u32 COLUMNS_OFFSET = in_words(COMBINE_BYTES);

struct Columns {
  compute_t first[COLUMNS], second[COLUMNS];
  device_inline Columns() {
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) first[i] = second[i] = 0;
  }
  device_inline void add(int u, int i, compute_t g, compute_t normal) {
    const int column = u * NUMBERS + (P_LANE == 0 ? 0 : i % NUMBERS);
    first[column] += g;
    second[column] = math_fma(g, normal, second[column]);
  }
};

// Leaves number `which` of each channel's two.
device_inline void leave(const NormalizationParams& params, const compute_t (&own)[COLUMNS],
                         int which) {
  compute_t* const all = shared_array<compute_t, COLUMNS * THREADS>(COLUMNS_OFFSET);
  block_barrier();  // the numbers before these have been read
#pragma unroll
  for (int i = 0; i < COLUMNS; ++i) all[i * THREADS + thread_x()] = own[i];
  block_barrier();
  const Partials partials(params);
  for (u32 i = thread_x(); i < COLUMNS * TY; i += THREADS) {
    const u32 ty = i % TY, column = i / TY;
    const u64 channel = static_cast<u64>(ty + column / NUMBERS * TY) * NUMBERS + column % NUMBERS;
    if (channel >= static_cast<u64>(COMBINED) * ELEMENTS) continue;
    compute_t sum = 0;
    for (u32 group = 0; group < GROUPS; ++group)
      for (u32 tx = 0; tx < TX; ++tx) sum += all[column * THREADS + (group * TY + ty) * TX + tx];
    partials.totals(channel, block_x())[which] = sum;
  }
}

KILN_KERNEL(rows_gradient, THREADS, MIN_BLOCKS, NormalizationParams, params) {
  static_assert(HELD && BACKWARD && !BY_CHANNEL);
  Columns columns;
#pragma unroll 1
  for (u64 set = block_x(); set < static_cast<u64>(params.rows); set += params.parts) {
    const Row row(params, static_cast<u32>(set));
    const Part part(params, row);
    const u32 first = thread_ty();
    const i64 steps = row.present ? params.steps + (first < params.rest ? 1 : 0) : 0;
    Statistics statistics;
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const i64 at = row.statistic(i);
      statistics.mean[i] = CENTERED ? static_cast<const compute_t*>(params.mean)[at] : compute_t(0);
      statistics.deviation[i] = static_cast<const compute_t*>(params.deviation)[at];
    }
    Vectors<UNROLL> vectors;
    Totals totals;
    if (steps > 0) {
      part.load<UNROLL, false>(vectors, first, TY, steps);
      part.add<UNROLL, false>(totals, vectors, first, TY, statistics, steps);
    }
    combine_threads(totals, 0, 0);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const Outcome outcome =
          outcome_of(params, totals.first[i], totals.second[i], 0, statistics.deviation[i]);
      totals.first[i] = outcome.first, totals.second[i] = outcome.second;
    }
    if (steps > 0)
      part.store<UNROLL, false>(vectors, first, TY, statistics, totals, steps, columns);
    if (SIDE_WARPS > 1) block_barrier();  // all have read the exchange, which is overwritten
  }
  leave(params, columns.first, 0);
  leave(params, columns.second, 1);
}
