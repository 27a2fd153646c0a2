// The operations of a reduction, for both of its steps: combining two sums, and finishing the
// result.
#pragma once

#include "common/block_layout.cuh"
#include "reduction/reduction_params.h"
#include "target/math.cuh"

// The values are those of kilnReduceTensorOp_t.
enum ReduceOperation { SUM = 1100, MEAN, MAX, MIN, NORM2, MUL, NORM1, AMAX };

using C = STRIDES(C);

// A norm has three sums of squares (SUMS): unscaled, of elements scaled up, and of elements scaled
// down. For any elements, one of the sums neither overflows nor underflows, and that one is used.
// f16 needs only the first.
static_assert(SUMS == 1 || OPERATION == NORM2);
constexpr bool SINGLE = sizeof(compute_t) == 4;
constexpr compute_t UP = SINGLE ? compute_t(0x1p100) : compute_t(0x1p700);
constexpr compute_t DOWN = SINGLE ? compute_t(0x1p-100) : compute_t(0x1p-700);
// Smaller unscaled sums of squares may have lost bits.
constexpr compute_t LEAST = SINGLE ? compute_t(0x1p-80) : compute_t(0x1p-900);

device_inline compute_t norm_of(const compute_t (&sums)[SUMS]) {
  if constexpr (SUMS > 1) {
    if (!(sums[0] < math_infinity<compute_t>())) return math_sqrt(sums[SUMS - 1]) * UP;
    if (sums[0] < LEAST) return math_sqrt(sums[1]) * DOWN;
  }
  return math_sqrt(sums[0]);
}

// The result of reducing no elements.
device_inline compute_t identity() {
  if constexpr (OPERATION == MUL) return 1;
  if constexpr (OPERATION == MAX) return -math_infinity<compute_t>();
  if constexpr (OPERATION == MIN) return math_infinity<compute_t>();
  return 0;
}
// NaN combined with anything is NaN: comparisons with NaN are false, so b is taken unless a is NaN.
device_inline compute_t combine(compute_t a, compute_t b) {
  if constexpr (OPERATION == MAX || OPERATION == AMAX) return a > b || a != a ? a : b;
  if constexpr (OPERATION == MIN) return a < b || a != a ? a : b;
  if constexpr (OPERATION == MUL) return a * b;
  return a + b;
}

// Stores a result of LANES lanes. `n`: its image; `kept`: its place in the image.
device_inline void store_result(const ReductionParams& params, u64 n, const Place& kept,
                                const compute_t (&totals)[SUMS][LANES]) {
  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  element_t* const c =
      static_cast<element_t*>(params.c) + static_cast<i64>(n) * C::IMAGE + C::kept(kept);
#pragma unroll
  for (int i = 0; i < LANES; ++i) {
    compute_t value = totals[0][i];
    if constexpr (OPERATION == MEAN) value *= static_cast<compute_t>(params.share);
    if constexpr (OPERATION == NORM2) {
      compute_t of_result[SUMS];
#pragma unroll
      for (int sum = 0; sum < SUMS; ++sum) of_result[sum] = totals[sum][i];
      value = norm_of(of_result);
    }
    value *= alpha;
    element_t* const to = c + static_cast<i64>(i) * C_STRIDE_LANE;
    if (beta != compute_t(0)) value += beta * to_compute(*to);
    *to = from_compute<element_t>(value);
  }
}
