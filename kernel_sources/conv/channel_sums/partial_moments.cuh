// The moments of a part of a channel, and how those of parts become those of a whole (Chan, Golub
// and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979):
// of parts of n_i elements each, mean = sum n_i mean_i / n, M2 = sum M2_i + n_i (mean_i - mean)^2.
#pragma once

#include "target/math.cuh"

// The mean is shift + mean. The shift is an element of the part, so that f32 holds the mean's
// distance from it, and distances between means of parts, however far from 0 they are.
struct PartialMoments {
  float shift, mean, m2;

  // The distance of the mean from another shift.
  device_inline float from(float other) const { return shift - other + mean; }
};

// Sums of x - shift and of its square.
struct ShiftedSums {
  float shift = 0, first = 0, second = 0;

  device_inline void add(float x) {
    const float d = x - shift;
    first += d;
    second = math_fma(d, d, second);
  }
  // The moments of n elements; of none, zeros.
  device_inline PartialMoments moments(float n) const {
    if (n == 0.0f) return {0, 0, 0};
    const float mean = first / n;
    // Squares that overflow give an infinity, elements that are none give NaN.
    if (!(second < math_infinity<float>())) return {shift, mean, second + 0.0f * first};
    const float m2 = math_fma(-first, mean, second);
    return {shift, mean, m2 < 0.0f ? 0.0f : m2};
  }
};
