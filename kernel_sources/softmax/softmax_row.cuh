// Shared by the kernels of softmax and its gradient: a thread's rows, and the formulas.
//
// Nothing checks for NaN. The maximum ignores NaN; then exp(NaN - maximum) makes the sum, and with
// it the whole row, NaN. So does infinity - infinity for a row that has +infinity or only
// -infinity.
#pragma once

#include "common/block_layout.cuh"
#include "softmax/softmax_params.h"
#include "target/math.cuh"

enum Algorithm { FAST = 800, ACCURATE, LOG };  // values of kilnSoftmaxAlgorithm_t

// The hardware's exp is more exact than 16-bit results.
constexpr bool BRIEF = ALGORITHM == FAST || sizeof(element_t) == 2;

device_inline compute_t lowest() { return -math_infinity<compute_t>(); }
device_inline compute_t exponential(compute_t x) { return BRIEF ? math_fast_exp(x) : math_exp(x); }
device_inline compute_t add(compute_t a, compute_t b) { return a + b; }
device_inline compute_t larger(compute_t a, compute_t b) { return math_max(a, b); }

// The neutral element, which is used beyond the end of a row.
device_inline compute_t neutral() { return BACKWARD ? compute_t(0) : lowest(); }

using In0 = STRIDES(IN0);
using In1 = STRIDES(IN1);
using Out = STRIDES(OUT);

// A thread's rows: LANES neighboring rows.
struct Rows {
  const element_t* in0;  // x; y
  const element_t* in1;  // dy
  element_t* out;        // y; dx
  bool present;  // false if there are fewer rows than threads: reads the first row and writes
                 // nothing
  bool aligned;

  // The rows of group `block` of RESULTS.
  device_inline Rows(const SoftmaxParams& params, u32 block) {
    u64 result = static_cast<u64>(block) * RESULTS + thread_result();
    u64 n = DIVIDE(ROWS_DIV_KEPT, result);
    present = n < static_cast<u64>(params.images);
    if (!present) result = n = 0;
    const Place place = kept_place(static_cast<index_t>(result - n * KEPT));
    const i64 image = static_cast<i64>(n);
    in0 = static_cast<const element_t*>(params.in[0]) + image * In0::IMAGE + In0::kept(place);
    in1 = static_cast<const element_t*>(params.in[1]) + image * In1::IMAGE + In1::kept(place);
    out = static_cast<element_t*>(params.out) + image * Out::IMAGE + Out::kept(place);
    aligned = is_aligned<element_t, VECTOR>(params.in[0]) &&
              is_aligned<element_t, VECTOR>(params.out) &&
              (!BACKWARD || is_aligned<element_t, VECTOR>(params.in[1]));
  }
};

// The term of a row's sum in the gradient.
device_inline compute_t gradient_term(compute_t y, compute_t dy) {
  return ALGORITHM == LOG ? dy : y * dy;
}
device_inline compute_t gradient(compute_t y, compute_t dy, compute_t sum) {
  return ALGORITHM == LOG ? dy - exponential(y) * sum : y * (dy - sum);
}
