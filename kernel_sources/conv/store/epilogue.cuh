// out = act(alpha * sum + beta * z + bias) for one or several sums; z is the output itself unless
// the plan has a residual.
#pragma once

#include "common/activation.cuh"
#include "common/compute_type.cuh"

constexpr bool BRIEF = sizeof(element_t) == 2;  // the activation's functions

struct Epilogue {
  element_t* out;         // both at the block's first image and group
  const element_t* z;     // with RESIDUAL
  const element_t* bias;  // at the group's first row
  compute_t alpha, beta;
  Coefficients<compute_t> coef;

  // What beta scales.
  device_inline const element_t* residual() const { return RESIDUAL ? z : out; }

  // The bias of a row; 0 if the plan has none.
  device_inline compute_t bias_of(int row) const {
    if constexpr (BIAS) return to_compute(bias[static_cast<i64>(row) * BIAS_STRIDE]);
    return 0;
  }

  device_inline element_t finish(compute_t sum, compute_t added) const {
    compute_t value = alpha * sum + added;
    if constexpr (ACTIVATION != Act::IDENTITY) value = activate<ACTIVATION, BRIEF>(value, coef);
    return from_compute<element_t>(value);
  }

  template <class Offset>
  device_inline void store_one(Offset at, Offset z_at, compute_t sum, compute_t row_bias) const {
    compute_t added = row_bias;
    if (beta != compute_t(0)) added += beta * to_compute(residual()[z_at]);
    out[at] = finish(sum, added);
  }

  // COUNT elements that lie side by side, in the output and in z alike, in one access: their
  // alignment is the caller's to know.
  template <int COUNT, class Offset>
  device_inline void store_vector(Offset at, const compute_t (&sums)[COUNT],
                                  const compute_t (&row_bias)[COUNT]) const {
    struct alignas(sizeof(element_t) * COUNT) Packed {
      element_t element[COUNT];
    };
    Packed value;
    compute_t added[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) added[i] = row_bias[i];
    if (beta != compute_t(0)) {
      value = *reinterpret_cast<const Packed*>(residual() + at);
#pragma unroll
      for (int i = 0; i < COUNT; ++i) added[i] += beta * to_compute(value.element[i]);
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) value.element[i] = finish(sums[i], added[i]);
    *reinterpret_cast<Packed*>(out + at) = value;
  }
};
