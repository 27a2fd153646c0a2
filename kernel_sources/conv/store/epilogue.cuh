// out = act(alpha * sum + bias + beta * z) for one or several sums, or with RESIDUAL_LAST
// act(alpha * sum + bias) + beta * z; z is the output itself unless the plan has a residual.
#pragma once

#include "common/activation.cuh"
#include "common/compute_type.cuh"

constexpr bool BRIEF = sizeof(output_t) == 2;  // activations need only 16-bit accuracy

struct Epilogue {
  output_t* out;         // out and z: at the block's first image and group
  const output_t* z;     // with RESIDUAL
  const output_t* bias;  // at the group's first row
  compute_t alpha, beta;
  Coefficients<compute_t> coef;

  // The element that beta scales.
  device_inline const output_t* residual() const { return RESIDUAL ? z : out; }

  // The bias of a row; 0 if the plan has none.
  device_inline compute_t bias_of(int row) const {
    if (BIAS) return to_compute(bias[static_cast<i64>(row) * BIAS_STRIDE]);
    return 0;
  }

  // The result for a sum. row_bias is its row's bias; z_value is what beta scales, and is used only
  // if beta is not 0.
  device_inline output_t finish(compute_t sum, compute_t row_bias, compute_t z_value) const {
    const bool adds = beta != compute_t(0);
    compute_t added = row_bias;
    if (!RESIDUAL_LAST && adds) added += beta * z_value;
    compute_t value = alpha * sum + added;
    if constexpr (ACTIVATION != Act::IDENTITY) value = activate<ACTIVATION, BRIEF>(value, coef);
    if (RESIDUAL_LAST && adds) value += beta * z_value;
    return from_compute<output_t>(value);
  }

  template <class Offset>
  device_inline void store_one(Offset at, Offset z_at, compute_t sum, compute_t row_bias) const {
    compute_t z_value = 0;
    if (beta != compute_t(0)) z_value = to_compute(residual()[z_at]);
    out[at] = finish(sum, row_bias, z_value);
  }

  // Stores COUNT elements that are contiguous and aligned to their total size, in the output and in
  // z, in one access.
  template <int COUNT, class Offset>
  device_inline void store_vector(Offset at, const compute_t (&sums)[COUNT],
                                  const compute_t (&row_bias)[COUNT]) const {
    struct alignas(sizeof(output_t) * COUNT) Packed {
      output_t element[COUNT];
    };
    Packed value;
    compute_t z_values[COUNT] = {};
    if (beta != compute_t(0)) {
      value = *reinterpret_cast<const Packed*>(residual() + at);
#pragma unroll
      for (int i = 0; i < COUNT; ++i) z_values[i] = to_compute(value.element[i]);
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) value.element[i] = finish(sums[i], row_bias[i], z_values[i]);
    *reinterpret_cast<Packed*>(out + at) = value;
  }
};
