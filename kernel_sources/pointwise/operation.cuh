// What a pointwise kernel computes of an element of each input: OPERATION is a PointwiseOp.
#pragma once

#include "common/activation.cuh"
#include "pointwise/pointwise_params.h"

enum PointwiseOperation { FILL, COPY, ACTIVATE, ACTIVATE_BACKWARD, ADD, MUL, MIN, MAX };

constexpr bool BRIEF = sizeof(OUT_t) == 2 && sizeof(compute_t) == 4;  // the functions

struct Operation {
  compute_t alpha, beta, alpha2, coefficient;

  device_inline explicit Operation(const PointwiseParams& params)
      : alpha(static_cast<compute_t>(params.alpha)),
        beta(static_cast<compute_t>(params.beta)),
        alpha2(static_cast<compute_t>(params.alpha2)),
        coefficient(static_cast<compute_t>(params.coefficient)) {}

  device_inline compute_t operator()(compute_t a, compute_t b) const {
    if constexpr (OPERATION == FILL) return alpha;
    if constexpr (OPERATION == COPY) return alpha * a;
    if constexpr (OPERATION == ACTIVATE) return alpha * activate<ACTIVATION, BRIEF>(a, coefficient);
    if constexpr (OPERATION == ACTIVATE_BACKWARD)
      return alpha * activation_slope<ACTIVATION, BRIEF>(a, coefficient) * b;
    a *= alpha, b *= alpha2;
    if constexpr (OPERATION == ADD) return a + b;
    if constexpr (OPERATION == MUL) return a * b;
    // The first comparison is false for a NaN in either, the second picks the one that is.
    if constexpr (OPERATION == MIN) return a < b || a != a ? a : b;
    return a > b || a != a ? a : b;
  }
};
