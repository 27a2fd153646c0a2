// Two totals of each channel, and how those of threads and blocks become those of the channel,
// always in the same order.
//
// Forward: the mean of x less a shift, and the sum of squares of deviations from it (Chan, Golub
// and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979):
// of parts of n_i elements each, mean = sum n_i mean_i / n, M2 = sum M2_i + n_i (mean_i - mean)^2.
// The shift is the channel's first element, so that a mean far from 0 costs no accuracy. Backward:
// the sum of g, and that of g (x - mean).
#pragma once

#include "normalization/results.cuh"
#include "normalization/rows.cuh"

struct Totals {
  compute_t first[LANES], second[LANES];
  device_inline Totals() {
#pragma unroll
    for (int i = 0; i < LANES; ++i) first[i] = second[i] = 0;
  }
};

constexpr int ELEMENTS = INNER ? VECTOR : 1;  // of a channel in a vector

// Elements of a channel that block `part` of `parts` has, whose channels have PART_THREADS threads.
device_inline compute_t elements_of_part(const NormalizationParams& params, u32 part) {
  const u32 before = part * PART_THREADS;
  const u32 more = params.rest <= before ? 0 : params.rest - before;
  const i64 vectors = params.steps * PART_THREADS + (more < PART_THREADS ? more : PART_THREADS);
  return static_cast<compute_t>(vectors * ELEMENTS);
}

// Combines the totals of the threads that share channels; all of them get the outcome. n: the
// elements of this thread; all: of all of them together. The exchange is the shared memory from 0.
device_inline void combine_threads(Totals& totals, compute_t n, compute_t all) {
  if constexpr (BACKWARD) {
    combine_ty(totals.first, 0, add);
  } else {
    const compute_t weight = all > compute_t(0) ? n / all : compute_t(0);
    compute_t mean[LANES];
#pragma unroll
    for (int i = 0; i < LANES; ++i) mean[i] = totals.first[i] * weight;
    combine_ty(mean, 0, add);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const compute_t d = totals.first[i] - mean[i];
      totals.second[i] = math_fma(d * d, n, totals.second[i]);
      totals.first[i] = mean[i];
    }
  }
  block_barrier();  // all threads have read the exchange, which is overwritten
  combine_ty(totals.second, 0, add);
}

// The shift: the first element of each of the thread's channels; 0 where there is none.
struct Shift {
  compute_t value[LANES];
  device_inline Shift(const NormalizationParams& params, const Channels& channels) {
    const element_t* const x = row_of<X>(params.x, channels);
#pragma unroll
    for (int i = 0; i < LANES; ++i) value[i] = params.images > 0 ? to_compute(x[i]) : compute_t(0);
  }
};

// Stores what the totals of whole channels give. A thread of each group of channels calls it.
device_inline void store_totals(const NormalizationParams& params, const Channels& channels,
                                const Totals& totals) {
  if constexpr (BACKWARD) {
    const OfChannels deviation(params.deviation, channels, 1);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      static_cast<compute_t*>(params.dbias)[channels.first() + i] = totals.first[i];
      static_cast<compute_t*>(params.dscale)[channels.first() + i] =
          totals.second[i] * deviation.value[i];
    }
  } else {
    const Shift shift(params, channels);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const u32 channel = channels.first() + i;
      const compute_t m2 = totals.second[i];
      // An infinity among the elements makes both NaN.
      const compute_t mean = m2 != m2 ? m2 : shift.value[i] + totals.first[i];
      const Moments moments{static_cast<compute_t>(params.images * COMBINED * ELEMENTS), mean, m2};
      if constexpr (MOMENTS)
        store_moments<KEPT * LANES>(params, channel, moments);
      else
        store_statistics(params, channel, moments, static_cast<compute_t>(params.share),
                         static_cast<compute_t>(params.unbiased), true);
    }
  }
}
