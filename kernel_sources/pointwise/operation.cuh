// The operation of a pointwise kernel on one element of each input. OPERATION is a PointwiseOp.
#pragma once

#include "common/activation.cuh"
#include "common/vector.cuh"
#include "pointwise/pointwise_params.h"

enum PointwiseOperation {
  FILL,
  COPY,
  ACTIVATE,
  ACTIVATE_BACKWARD,
  ADD,
  MUL,
  MIN,
  MAX,
  SUB,
  DIV,
  EQ,
  NE,
  LT,
  LE,
  GT,
  GE
};

constexpr bool BRIEF = sizeof(OUT_t) == 2 && sizeof(compute_t) == 4;  // brief functions suffice

struct Operation {
  compute_t alpha, beta, alpha2;
  Coefficients<compute_t> coef;

  device_inline explicit Operation(const PointwiseParams& params)
      : alpha(static_cast<compute_t>(params.alpha)),
        beta(static_cast<compute_t>(params.beta)),
        alpha2(static_cast<compute_t>(params.alpha2)),
        coef(coefficients_of<compute_t>(params)) {
    // The bound of y, rounded to y's type.
    if constexpr (OPERATION == ACTIVATE_BACKWARD &&
                  (ACTIVATION == Act::CLIPPED_RELU || ACTIVATION == Act::CLIP))
      coef = {rounded(coef.first), rounded(coef.second)};
  }

  device_inline compute_t operator()(compute_t a, compute_t b) const {
    if constexpr (OPERATION == FILL) return alpha;
    if constexpr (OPERATION == COPY) return alpha * a;
    if constexpr (OPERATION == ACTIVATE) return alpha * activate<ACTIVATION, BRIEF>(a, coef);
    if constexpr (OPERATION == ACTIVATE_BACKWARD)
      return alpha * activation_slope<ACTIVATION, BRIEF>(a, coef) * b;
    a *= alpha, b *= alpha2;
    if constexpr (OPERATION == ADD) return a + b;
    if constexpr (OPERATION == SUB) return a - b;
    if constexpr (OPERATION == MUL) return a * b;
    if constexpr (OPERATION == DIV) return a / b;
    if constexpr (OPERATION == EQ) return truth(a == b);
    if constexpr (OPERATION == NE) return truth(a != b);
    if constexpr (OPERATION == LT) return truth(a < b);
    if constexpr (OPERATION == LE) return truth(a <= b);
    if constexpr (OPERATION == GT) return truth(a > b);
    if constexpr (OPERATION == GE) return truth(a >= b);
    // The first comparison is false if either is NaN; the second one then picks the NaN.
    if constexpr (OPERATION == MIN) return a < b || a != a ? a : b;
    return a > b || a != a ? a : b;
  }

 private:
  device_inline static compute_t truth(bool value) { return value ? compute_t(1) : compute_t(0); }
  device_inline static compute_t rounded(compute_t v) {
    return convert_in<compute_t>(convert_out<OUT_t>(v));
  }
};
