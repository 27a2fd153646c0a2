// The addresses of the elements of a locally connected layer, from the constants that all its
// kernels have, and how a result is stored.
#pragma once

#include "common/compute_type.cuh"
#include "local/local_params.h"

// Axes of space are depth, height, width: of the input IN, the output OUT, the filter FILTER.
struct Place {
  i64 at[3];
};

// Offsets are 64 bits wide, whatever the constants' own width.
device_inline i64 product(i64 a, i64 b) { return a * b; }

// The filter's tap for a tap counted in the input's order.
device_inline int tap_of(int axis, int tap) {
  return FLIPPED ? static_cast<int>(FILTER[axis]) - 1 - tap : tap;
}
// The input position along an axis that a tap of an output reads.
device_inline i64 input_at(int axis, i64 output, int tap) {
  return product(output, STRIDE[axis]) - PAD[axis] + product(tap, DILATION[axis]);
}

device_inline i64 x_offset(const Place& place) {
  return place.at[0] * X_STRIDE[2] + place.at[1] * X_STRIDE[3] + place.at[2] * X_STRIDE[4];
}
device_inline i64 y_offset(const Place& place) {
  return place.at[0] * Y_STRIDE[2] + place.at[1] * Y_STRIDE[3] + place.at[2] * Y_STRIDE[4];
}
// The offset of an output pixel's weights among one image's.
device_inline i64 pixel_offset(const Place& place) {
  return place.at[0] * OUTER_STRIDE[1] + place.at[1] * OUTER_STRIDE[2] +
         place.at[2] * OUTER_STRIDE[3];
}
// The offset within a filter's channel; taps are in the input's order.
device_inline i64 tap_offset(int t, int r, int s) {
  return product(tap_of(0, t), W_STRIDE[2]) + product(tap_of(1, r), W_STRIDE[3]) +
         product(tap_of(2, s), W_STRIDE[4]);
}
device_inline i64 bias_offset(i64 channel, const Place& place) {
  return channel * BIAS_STRIDE[1] + place.at[0] * BIAS_STRIDE[2] + place.at[1] * BIAS_STRIDE[3] +
         place.at[2] * BIAS_STRIDE[4];
}

// out[at] = alpha * sum + bias + beta * out[at].
device_inline void store_result(const LocalParams& params, i64 at, compute_t sum, compute_t bias) {
  output_t* const out = static_cast<output_t*>(params.out) + at;
  compute_t added = bias;
  if (params.beta != 0) added += static_cast<compute_t>(params.beta) * to_compute(*out);
  *out = from_compute<output_t>(static_cast<compute_t>(params.alpha) * sum + added);
}
