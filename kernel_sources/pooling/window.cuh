// Windows and positions of pooling: output o reads x[o * STRIDE - PAD + tap * DILATION].
#pragma once

#include "common/magic.cuh"
#include "common/vector.cuh"
#include "pooling/pooling_params.h"
#include "target/kernel.cuh"
#include "target/math.cuh"

enum PoolingMode { MAX = 600, AVERAGE_INCLUDE, AVERAGE_EXCLUDE };  // kilnPoolingMode_t's values

constexpr int THREADS = 256;

// One vector of a tensor: VECTOR channels (CHANNELS_INNER) or one element.
struct Place {
  i64 n;
  index_t c;  // counts vectors if CHANNELS_INNER
  int d, h, w;
};

// The thread's position; positions are counted image by image in the order of memory.
device_inline Place thread_place() {
  const u64 first = static_cast<u64>(block_x()) * THREADS;
  const u64 image = DIVIDE(BLOCK_DIV_IMAGE, first);
  index_t rest = static_cast<index_t>(first - image * BLOCK_DIV_IMAGE) + thread_x();
  const index_t later = DIVIDE(DIV_IMAGE, rest);
  rest -= later * DIV_IMAGE;
  Place place;
  place.n = static_cast<i64>(image + later);
  index_t pixel;
  if constexpr (CHANNELS_INNER) {
    pixel = DIVIDE(DIV_CHANNELS, rest);
    place.c = rest - pixel * DIV_CHANNELS;
  } else {
    place.c = DIVIDE(DIV_PIXELS, rest);
    pixel = rest - place.c * DIV_PIXELS;
  }
  const index_t d = DIVIDE(DIV_PLANE, pixel);
  const index_t in_plane = pixel - d * DIV_PLANE;
  const index_t h = DIVIDE(DIV_WIDTH, in_plane);
  place.d = static_cast<int>(d);
  place.h = static_cast<int>(h);
  place.w = static_cast<int>(in_plane - h * DIV_WIDTH);
  return place;
}

// The taps begin <= t < end of output o that lie inside x, along a dimension of `size` elements.
struct Taps {
  int begin, end, first;  // tap t is at first + t * dilation
  device_inline Taps(int o, int stride, int pad, int dilation, int window, int size) {
    first = o * stride - pad;
    if constexpr (INSIDE) {
      begin = 0, end = window;
      return;
    }
    begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
    const int inside = first < size ? (size - 1 - first) / dilation + 1 : 0;
    end = inside < window ? inside : window;
    if (begin > end) begin = end;
  }

  // The number of taps before position `until`.
  device_inline int counted(int window, int dilation, int until) const {
    const int taps = first < until ? (until - 1 - first) / dilation + 1 : 0;
    return taps < window ? taps : window;
  }
};
struct Window {
  Taps d, h, w;
  device_inline Window(int o, int p, int q)
      : d(o, STRIDE_D, PAD_D, DILATION_D, WINDOW_D, IN_D),
        h(p, STRIDE_H, PAD_H, DILATION_H, WINDOW_H, IN_H),
        w(q, STRIDE_W, PAD_W, DILATION_W, WINDOW_W, IN_W) {}

  // The divisor of an average; 0 if no tap counts.
  device_inline int divisor() const {
    if constexpr (MODE == AVERAGE_INCLUDE && !SHARES) return WINDOW_D * WINDOW_H * WINDOW_W;
    if constexpr (MODE == AVERAGE_INCLUDE)
      return d.counted(WINDOW_D, DILATION_D, COUNTED_D) *
             h.counted(WINDOW_H, DILATION_H, COUNTED_H) *
             w.counted(WINDOW_W, DILATION_W, COUNTED_W);
    return (d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin);
  }
};

// Whether x replaces the maximum so far.
device_inline bool replaces(compute_t x, compute_t best, bool found) {
  if constexpr (PROPAGATE_NAN) return !found || x > best || (x != x && best == best);
  return x == x && (!found || x > best);
}
