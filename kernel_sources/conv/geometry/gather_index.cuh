// The implicit lowering of a gather (src/engines/conv/gather.hpp): the source address of element
// (reduction, pixel) of the lowered matrix, which itself never exists.
//
// The reduction index runs over channels and taps in the order in which the source is in memory:
//   CHANNELS_INNER   k = ((t * R + r) * S + s) * C + c      (channels-last tensors)
//   otherwise        k = ((c * T + t) * R + r) * S + s
// Pixels are counted image by image or, with IMAGES_INNER, place by place: a tile then holds one
// place of many images, all of which have the same taps inside the source. A place is a pixel or,
// if these are contiguous in the source, COLUMNS_TOGETHER pixels of a row.
//
// FIXED: there is one phase, and pixels are counted image by image. T, R and S above are the
// filter's sizes, and every division is by a constant. Otherwise T, R and S count the taps that
// some pixel of the tile has inside the source; the block computes them once, and visits no other
// tap.
#pragma once

#include "common/magic.cuh"
#include "conv/geometry/live_taps.cuh"
#include "conv/geometry/output_place.cuh"

// ---- pixels -----------------------------------------------------------------------------------

// Rows from the middle of an image outwards: with IMAGES_INNER, middle rows have the most taps
// inside the source, so the longest work begins first.
device_inline int from_the_middle(int row, int rows) {
  return rows / 2 + (row % 2 != 0 ? -(row + 1) / 2 : row / 2);
}

// The start of a tile's pixels. FIXED: counted in 32 bits from the tile's first image, at which the
// block's pointers begin; otherwise from image 0.
struct PixelOrigin {
  int phase;
  u32 images;
  u32 first;     // index of the tile's first pixel; IMAGES_INNER: counted from its place's first
  u32 position;  // IMAGES_INNER: the number of that place in an image

  device_inline Pixel decode(u32 index) const {
    Pixel pixel;
    u32 rest;
    if constexpr (FIXED) {
      pixel.image = DIVIDE(DIV_OPQ, index);
      rest = index - pixel.image * DIV_OPQ;
    } else if constexpr (IMAGES_INNER) {
      const u32 whole = index / COLUMNS_TOGETHER, places = whole / images;
      pixel.image = whole - places * images;
      rest = position + places;
    } else {
      const u32 pixels = OUT_O[phase] * OUT_P[phase] * OUT_Q[phase];
      pixel.image = index / pixels;
      rest = index - pixel.image * pixels;
    }
    pixel.o = 0;
    if constexpr (FIXED) {
      if (OUT_O[0] > 1) {
        pixel.o = DIVIDE(DIV_PQ, rest);
        rest -= pixel.o * DIV_PQ;
      }
      pixel.p = DIVIDE(DIV_Q, rest);
      pixel.q = rest - pixel.p * DIV_Q;
    } else {
      const u32 width = OUT_Q[phase] / COLUMNS_TOGETHER, plane = OUT_P[phase] * width;
      pixel.o = rest / plane;
      rest -= pixel.o * plane;
      pixel.p = rest / width;
      pixel.q = (rest - pixel.p * width) * COLUMNS_TOGETHER + index % COLUMNS_TOGETHER;
      if constexpr (IMAGES_INNER) pixel.p = from_the_middle(pixel.p, OUT_P[phase]);
    }
    return pixel;
  }
};

// ---- taps -------------------------------------------------------------------------------------

struct Tap {
  int c, t, r, s;
};

// n / d for n * d < 2^32, by a multiplier that is computed once.
struct RuntimeDivisor {
  u32 d, multiplier;
  device_inline explicit RuntimeDivisor(u32 divisor)
      : d(divisor), multiplier(divisor > 1 ? 0xffffffffu / divisor + 1 : 0) {}
  device_inline u32 divide(u32 n) const { return d > 1 ? mulhi(n, multiplier) : n; }
};

// The taps that this block visits, unless FIXED.
struct TapBox {
  TapRange t, r, s;
  RuntimeDivisor trs, rs, ss;

  device_inline TapBox(TapRange depth, TapRange height, TapRange width)
      : t(depth),
        r(height),
        s(width),
        trs((t.end - t.begin) * (r.end - r.begin) * (s.end - s.begin)),
        rs((r.end - r.begin) * (s.end - s.begin)),
        ss(s.end - s.begin) {}

  device_inline int reduction() const {
    if constexpr (FIXED) return REDUCTION;
    return CHANNELS * trs.d;
  }

  device_inline Tap decode(u32 k) const {
    Tap tap;
    u32 rest;  // the tap's number, from t, r and s
    if constexpr (CHANNELS_INNER) {
      rest = DIVIDE(DIV_C, k);
      tap.c = k - rest * DIV_C;
    } else if constexpr (FIXED) {
      tap.c = DIVIDE(DIV_TRS, k);
      rest = k - tap.c * DIV_TRS;
    } else {
      tap.c = trs.divide(k);
      rest = k - tap.c * trs.d;
    }
    tap.t = 0;
    if constexpr (FIXED) {
      if (FILTER_T[0] > 1) {
        tap.t = DIVIDE(DIV_RS, rest);
        rest -= tap.t * DIV_RS;
      }
      tap.r = DIVIDE(DIV_S, rest);
      tap.s = rest - tap.r * DIV_S;
    } else {
      if constexpr (TAPS_IN_DEPTH) {
        tap.t = rs.divide(rest);
        rest -= tap.t * rs.d;
      }
      tap.r = ss.divide(rest);
      tap.s = rest - tap.r * ss.d;
      tap.t += t.begin, tap.r += r.begin, tap.s += s.begin;
    }
    return tap;
  }
};

// The taps of the tile whose pixels are `first` to `last`.
device_inline TapBox taps_of_tile(const PixelOrigin& origin, u32 first, u32 last) {
  const int phase = origin.phase;
  TapRange t{0, FILTER_T[phase]}, r{0, FILTER_R[phase]}, s{0, FILTER_S[phase]};
  if constexpr (!FIXED) {
    const Pixel a = origin.decode(first), b = origin.decode(last);
    // Within one row only q varies; within one plane also the row, in some order; across images
    // everything may vary.
    const bool plane = a.o == b.o && (IMAGES_INNER || a.image == b.image);
    const bool row = plane && a.p == b.p;
    const bool volume = IMAGES_INNER || a.image == b.image;
    t = live_taps<PADDED_D>(volume ? a.o : 0, volume ? b.o : OUT_O[phase] - 1, STRIDE_D,
                            ORIGIN_D[phase], STEP_D, SOURCE_D, FILTER_T[phase]);
    r = live_taps<PADDED_H>(row ? a.p : 0, row ? b.p : OUT_P[phase] - 1, STRIDE_H, ORIGIN_H[phase],
                            STEP_H, SOURCE_H, FILTER_R[phase]);
    s = live_taps<PADDED_W>(row ? a.q : 0, row ? b.q : OUT_Q[phase] - 1, STRIDE_W, ORIGIN_W[phase],
                            STEP_W, SOURCE_W, FILTER_S[phase]);
  }
  return TapBox(t, r, s);
}

// ---- offsets ----------------------------------------------------------------------------------

// The source position that a pixel's first tap reads. ORIGIN includes the padding and, if taps are
// walked backwards, the filter's extent.
device_inline int first_d(Pixel pixel, int phase) { return pixel.o * STRIDE_D + ORIGIN_D[phase]; }
device_inline int first_h(Pixel pixel, int phase) { return pixel.p * STRIDE_H + ORIGIN_H[phase]; }
device_inline int first_w(Pixel pixel, int phase) { return pixel.q * STRIDE_W + ORIGIN_W[phase]; }

// Element (k, pixel) of the lowered matrix is at source - bias(phase) + pixel_offset + tap_offset.
// The bias is the distance from the first tap of the first pixel, which may be in the padding, to
// the source. It keeps pixel offsets from being negative, so that one register holds each.
device_inline offset_t bias(int phase) {
  return -(static_cast<offset_t>(ORIGIN_D[phase]) * SOURCE_STRIDE_D +
           static_cast<offset_t>(ORIGIN_H[phase]) * SOURCE_STRIDE_H +
           static_cast<offset_t>(ORIGIN_W[phase]) * SOURCE_STRIDE_W);
}
device_inline pixel_offset_t pixel_offset(Pixel pixel) {
  return static_cast<pixel_offset_t>(pixel.image) * SOURCE_STRIDE_N +
         static_cast<pixel_offset_t>(pixel.o) * (STRIDE_D * SOURCE_STRIDE_D) +
         static_cast<pixel_offset_t>(pixel.p) * (STRIDE_H * SOURCE_STRIDE_H) +
         static_cast<pixel_offset_t>(pixel.q) * (STRIDE_W * SOURCE_STRIDE_W);
}
device_inline offset_t tap_offset(Tap tap) {
  return static_cast<offset_t>(tap.c) * SOURCE_STRIDE_C +
         static_cast<offset_t>(tap.t) * (STEP_D * SOURCE_STRIDE_D) +
         static_cast<offset_t>(tap.r) * (STEP_H * SOURCE_STRIDE_H) +
         static_cast<offset_t>(tap.s) * (STEP_W * SOURCE_STRIDE_W);
}

device_inline offset_t filter_offset(Tap tap) {
  return static_cast<offset_t>(tap.c) * W_STRIDE_C + static_cast<offset_t>(tap.t) * W_STRIDE_T +
         static_cast<offset_t>(tap.r) * W_STRIDE_R + static_cast<offset_t>(tap.s) * W_STRIDE_S;
}
