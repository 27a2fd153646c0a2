// y = alpha * accumulator + beta * y for a thread's TM x TN part of a tile.
#pragma once

#include "common/compute_type.cuh"
#include "conv/forward_index.cuh"

struct Epilogue {
  element_t* y;  // at the first image of the tile, this block's group
  compute_t alpha, beta;

  device_inline void store_one(offset_t at, compute_t sum) const {
    compute_t value = alpha * sum;
    if (beta != compute_t(0)) value += beta * to_compute(y[at]);
    y[at] = from_compute<element_t>(value);
  }

  // VECTOR elements that lie side by side, in one access: the alignment is the caller's to know.
  device_inline void store_vector(offset_t at, const compute_t (&sums)[VECTOR]) const {
    struct alignas(sizeof(element_t) * VECTOR) Packed {
      element_t element[VECTOR];
    };
    Packed* target = reinterpret_cast<Packed*>(y + at);
    Packed value;
    if (beta != compute_t(0)) {
      value = *target;
#pragma unroll
      for (int i = 0; i < VECTOR; ++i)
        value.element[i] =
            from_compute<element_t>(alpha * sums[i] + beta * to_compute(value.element[i]));
    } else {
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) value.element[i] = from_compute<element_t>(alpha * sums[i]);
    }
    *target = value;
  }
};
