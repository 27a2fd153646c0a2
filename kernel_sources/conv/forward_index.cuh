// The implicit lowering of a forward convolution: where element (reduction, pixel) of the lowered
// matrix lies in x. The matrix itself never exists.
//
// The reduction index runs over channels and taps, in the order in which x lies in memory:
//   CHANNELS_INNER   k = ((t * R + r) * S + s) * C + c      (channels-last tensors)
//   otherwise        k = ((c * T + t) * R + r) * S + s
#pragma once

#include "common/magic.cuh"

struct Pixel {  // of y
  int image, o, p, q;
};

// `index` counts the pixels of consecutive images from the first pixel of some image on.
device_inline Pixel decode_pixel(u32 index) {
  Pixel pixel;
  pixel.image = DIVIDE(DIV_OPQ, index);
  u32 rest = index - pixel.image * DIV_OPQ;
  pixel.o = 0;
  if constexpr (OUT_O > 1) {
    pixel.o = DIVIDE(DIV_PQ, rest);
    rest -= pixel.o * DIV_PQ;
  }
  pixel.p = DIVIDE(DIV_Q, rest);
  pixel.q = rest - pixel.p * DIV_Q;
  return pixel;
}

struct Tap {
  int c, t, r, s;
};

device_inline Tap decode_reduction(u32 k) {
  Tap tap;
  u32 rest;  // the tap, t, r and s together
  if constexpr (CHANNELS_INNER) {
    rest = DIVIDE(DIV_C, k);
    tap.c = k - rest * DIV_C;
  } else {
    tap.c = DIVIDE(DIV_TRS, k);
    rest = k - tap.c * DIV_TRS;
  }
  tap.t = 0;
  if constexpr (FILTER_T > 1) {
    tap.t = DIVIDE(DIV_RS, rest);
    rest -= tap.t * DIV_RS;
  }
  tap.r = DIVIDE(DIV_S, rest);
  tap.s = rest - tap.r * DIV_S;
  return tap;
}

// The position in x that the first tap of a pixel reads; ORIGIN holds the padding and, for a
// flipped filter, the far end of its extent.
device_inline int first_d(Pixel pixel) { return pixel.o * STRIDE_D + ORIGIN_D; }
device_inline int first_h(Pixel pixel) { return pixel.p * STRIDE_H + ORIGIN_H; }
device_inline int first_w(Pixel pixel) { return pixel.q * STRIDE_W + ORIGIN_W; }

// Element (k, pixel) of the lowered matrix lies pixel_offset + tap_offset elements behind x - BIAS:
// BIAS, how far the first tap of the first pixel lies before x, keeps pixel offsets from being
// negative, so that one register holds each.
constexpr offset_t BIAS =
    -(static_cast<offset_t>(ORIGIN_D) * X_STRIDE_D + static_cast<offset_t>(ORIGIN_H) * X_STRIDE_H +
      static_cast<offset_t>(ORIGIN_W) * X_STRIDE_W);
device_inline pixel_offset_t pixel_offset(Pixel pixel) {
  return static_cast<offset_t>(pixel.image) * X_STRIDE_N +
         static_cast<offset_t>(pixel.o) * (STRIDE_D * X_STRIDE_D) +
         static_cast<offset_t>(pixel.p) * (STRIDE_H * X_STRIDE_H) +
         static_cast<offset_t>(pixel.q) * (STRIDE_W * X_STRIDE_W);
}
device_inline offset_t tap_offset(Tap tap) {
  return static_cast<offset_t>(tap.c) * X_STRIDE_C +
         static_cast<offset_t>(tap.t) * (STEP_D * X_STRIDE_D) +
         static_cast<offset_t>(tap.r) * (STEP_H * X_STRIDE_H) +
         static_cast<offset_t>(tap.s) * (STEP_W * X_STRIDE_W);
}

device_inline offset_t filter_offset(Tap tap) {
  return static_cast<offset_t>(tap.c) * W_STRIDE_C + static_cast<offset_t>(tap.t) * W_STRIDE_T +
         static_cast<offset_t>(tap.r) * W_STRIDE_R + static_cast<offset_t>(tap.s) * W_STRIDE_S;
}

device_inline offset_t output_offset(Pixel pixel) {
  return static_cast<offset_t>(pixel.image) * Y_STRIDE_N +
         static_cast<offset_t>(pixel.o) * Y_STRIDE_O + static_cast<offset_t>(pixel.p) * Y_STRIDE_P +
         static_cast<offset_t>(pixel.q) * Y_STRIDE_Q;
}
