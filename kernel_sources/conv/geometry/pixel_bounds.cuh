// Which taps of a thread's pixels are inside the source; the others count as zero.
//
// With TAP_MASK (all taps of the three dimensions fit into 32 bits) each pixel keeps one word. Its
// bits t, TAPS_T + r and TAPS_T + TAPS_R + s are set if that tap is inside the source along its
// dimension; TAPS_* is the most that any phase has. A test in the main loop is then one AND and one
// comparison. Dimensions that no tap leaves have no bits.
#pragma once

#include "conv/geometry/gather_index.cuh"

constexpr bool PADDED = PADDED_D || PADDED_H || PADDED_W;

device_inline bool in_depth(int first, int t) {
  return static_cast<u32>(first + t * STEP_D) < static_cast<u32>(SOURCE_D);
}
device_inline bool in_height(int first, int r) {
  return static_cast<u32>(first + r * STEP_H) < static_cast<u32>(SOURCE_H);
}
device_inline bool in_width(int first, int s) {
  return static_cast<u32>(first + s * STEP_W) < static_cast<u32>(SOURCE_W);
}

// The bits that must be set for a tap.
device_inline u32 tap_bits(Tap tap) {
  u32 bits = 0;
  if constexpr (TAP_MASK && PADDED_D) bits |= 1u << tap.t;
  if constexpr (TAP_MASK && PADDED_H) bits |= 1u << (TAPS_T + tap.r);
  if constexpr (TAP_MASK && PADDED_W) bits |= 1u << (TAPS_T + TAPS_R + tap.s);
  return bits;
}

template <int PIXELS>
struct PixelBounds {
  u32 taps[PIXELS];                     // used with TAP_MASK
  int d[PIXELS], h[PIXELS], w[PIXELS];  // used without it: positions of each pixel's first tap

  device_inline void set(int i, Pixel pixel, int phase) {
    d[i] = first_d(pixel, phase), h[i] = first_h(pixel, phase), w[i] = first_w(pixel, phase);
  }

  // With TAP_MASK, must be called after all pixels are set.
  device_inline void make_masks() {
    if constexpr (PADDED) {
#pragma unroll
      for (int i = 0; i < PIXELS; ++i) taps[i] = 0;
    }
    if constexpr (PADDED_D) {
#pragma unroll 1
      for (int t = 0; t < TAPS_T; ++t)
#pragma unroll
        for (int i = 0; i < PIXELS; ++i) taps[i] |= static_cast<u32>(in_depth(d[i], t)) << t;
    }
    if constexpr (PADDED_H) {
#pragma unroll 1
      for (int r = 0; r < TAPS_R; ++r)
#pragma unroll
        for (int i = 0; i < PIXELS; ++i)
          taps[i] |= static_cast<u32>(in_height(h[i], r)) << (TAPS_T + r);
    }
    if constexpr (PADDED_W) {
#pragma unroll 1
      for (int s = 0; s < TAPS_S; ++s)
#pragma unroll
        for (int i = 0; i < PIXELS; ++i)
          taps[i] |= static_cast<u32>(in_width(w[i], s)) << (TAPS_T + TAPS_R + s);
    }
  }

  // `bits` are tap_bits(tap).
  device_inline bool inside(int i, Tap tap, u32 bits) const {
    if constexpr (TAP_MASK && PADDED) return (taps[i] & bits) == bits;
    bool in = true;
    if constexpr (PADDED_D) in = in && in_depth(d[i], tap.t);
    if constexpr (PADDED_H) in = in && in_height(h[i], tap.r);
    if constexpr (PADDED_W) in = in && in_width(w[i], tap.s);
    return in;
  }
};
