// Two totals of what a thread, a block or a cluster combines, and how those of threads become those
// of the block, always in the same order.
//
// Forward: the mean of x less a shift, and the sum of squares of deviations from it (Chan, Golub
// and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979):
// of parts of n_i elements each, mean = sum n_i mean_i / n, M2 = sum M2_i + n_i (mean_i - mean)^2.
// The shift is one of the elements, so that a mean far from 0 costs no accuracy. Not CENTERED, the
// mean stays 0. Backward: two sums.
#pragma once

#include "common/block_layout.cuh"
#include "normalization/normalization_params.h"
#include "target/math.cuh"

device_inline compute_t add(compute_t a, compute_t b) { return a + b; }

template <int COUNT>
struct TotalsOf {
  compute_t first[COUNT], second[COUNT];
  device_inline TotalsOf() {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) first[i] = second[i] = 0;
  }
};
using Totals = TotalsOf<LANES>;

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
  } else if constexpr (CENTERED) {
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
  if constexpr (BACKWARD || CENTERED)
    block_barrier();  // all have read the exchange, which is overwritten
  combine_ty(totals.second, 0, add);
}

// The totals of number `mine` of what `parts` blocks have left: [part][STRIDE], of which the first
// COUNT from `mine` on, and those LANES behind them, are of a thread's lanes, or of some of them.
// share: 1 / (the elements of all parts).
template <int STRIDE, int COUNT = LANES>
device_inline TotalsOf<COUNT> joined_parts(const NormalizationParams& params, const compute_t* all,
                                           u32 parts, int mine, compute_t share) {
  TotalsOf<COUNT> joined;
#pragma unroll 1
  for (u32 part = 0; part < parts; ++part) {
    const compute_t weight = BACKWARD ? compute_t(1) : elements_of_part(params, part) * share;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      joined.first[i] = math_fma(all[part * STRIDE + mine + i], weight, joined.first[i]);
  }
#pragma unroll 1
  for (u32 part = 0; part < parts; ++part) {
    const compute_t n = BACKWARD ? compute_t(0) : elements_of_part(params, part);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      joined.second[i] += all[part * STRIDE + mine + LANES + i];
      if constexpr (!BACKWARD && CENTERED) {
        const compute_t d = all[part * STRIDE + mine + i] - joined.first[i];
        joined.second[i] = math_fma(d * d, n, joined.second[i]);
      }
    }
  }
  return joined;
}

// Forward, of a thread: it joins COUNT vectors at a time, their own mean, the squares of deviations
// from it, then Chan's formula with what it has. So nothing large cancels, whatever the shift is.
struct RunningMoments : Totals {
  u32 n = 0;  // elements so far, of each lane

  // Adds COUNT vectors of x, or as many as are left.
  template <int COUNT, bool WHOLE, class Shift>
  device_inline void add_moments(const Pack<element_t, VECTOR> (&x)[COUNT], const Shift& shift,
                                 i64 left) {
    if constexpr (!CENTERED) return add_squares<COUNT, WHOLE>(x, left);
    const u32 before = n;
    const u32 more = (WHOLE || left > COUNT ? COUNT : static_cast<u32>(left)) * ELEMENTS;
    n += more;
    const compute_t own = WHOLE ? compute_t(1) / compute_t(COUNT * ELEMENTS)
                                : compute_t(1) / static_cast<compute_t>(more);
    const compute_t ratio =
        static_cast<compute_t>(more) * math_reciprocal(static_cast<compute_t>(n));
    const compute_t weight = static_cast<compute_t>(before) * ratio;
#pragma unroll
    for (int lane = 0; lane < LANES; ++lane) {
      compute_t sum = 0;
#pragma unroll
      for (int u = 0; u < COUNT; ++u)
        if (WHOLE || u < left)
#pragma unroll
          for (int i = 0; i < ELEMENTS; ++i)
            sum += to_compute(x[u].element[INNER ? i : lane]) - shift.value[lane];
      const compute_t mean = sum * own;
      compute_t squares = 0;
#pragma unroll
      for (int u = 0; u < COUNT; ++u)
        if (WHOLE || u < left)
#pragma unroll
          for (int i = 0; i < ELEMENTS; ++i) {
            const compute_t d =
                to_compute(x[u].element[INNER ? i : lane]) - shift.value[lane] - mean;
            squares = math_fma(d, d, squares);
          }
      const compute_t apart = mean - first[lane];
      first[lane] = math_fma(apart, ratio, first[lane]);
      second[lane] += math_fma(apart * apart, weight, squares);
    }
  }

 private:
  template <int COUNT, bool WHOLE>
  device_inline void add_squares(const Pack<element_t, VECTOR> (&x)[COUNT], i64 left) {
#pragma unroll
    for (int lane = 0; lane < LANES; ++lane) {
      compute_t squares = 0;
#pragma unroll
      for (int u = 0; u < COUNT; ++u)
        if (WHOLE || u < left)
#pragma unroll
          for (int i = 0; i < ELEMENTS; ++i) {
            const compute_t d = to_compute(x[u].element[INNER ? i : lane]);
            squares = math_fma(d, d, squares);
          }
      second[lane] += squares;
    }
  }
};
