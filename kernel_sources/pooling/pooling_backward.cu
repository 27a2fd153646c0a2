// The gradient of pooling: a thread per element of dx, or per VECTOR channels of one, which looks
// up the windows that hold it. A maximum's window is searched for its first maximal tap, so that
// the gradient has one place, and sums have one order.
#include "pooling/window.cuh"

// The outputs first <= o <= last whose windows may contain position `at`.
struct Holders {
  int first, last;
  device_inline Holders(int at, int stride, int pad, int dilation, int window, int outputs) {
    const int low = at + pad - (window - 1) * dilation;
    first = low <= 0 ? 0 : (low + stride - 1) / stride;
    last = at + pad < 0 ? -1 : (at + pad) / stride;
    if (last >= outputs) last = outputs - 1;
  }
};

// Whether position `at` is one of the window's taps.
device_inline bool holds(int at, int o, int stride, int pad, int dilation) {
  return dilation == 1 || (at + pad - o * stride) % dilation == 0;
}

// Finds each channel's first maximal tap, as the number of its position in the image; -1 if the
// window has no tap inside x.
device_inline void find_maxima(const element_t* x, bool aligned, const Window& window,
                               i64 (&places)[VECTOR]) {
  compute_t best[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) places[i] = -1, best[i] = 0;
#pragma unroll 1
  for (int t = window.d.begin; t < window.d.end; ++t) {
#pragma unroll 1
    for (int r = window.h.begin; r < window.h.end; ++r) {
#pragma unroll 4
      for (int s = window.w.begin; s < window.w.end; ++s) {
        const int d = window.d.first + t * DILATION_D, h = window.h.first + r * DILATION_H;
        const int w = window.w.first + s * DILATION_W;
        compute_t value[VECTOR];
        load_vector(x + static_cast<i64>(d) * X_STRIDE_D + static_cast<i64>(h) * X_STRIDE_H +
                        static_cast<i64>(w) * X_STRIDE_W,
                    aligned, value);
        const i64 place = (static_cast<i64>(d) * IN_H + h) * IN_W + w;
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
          if (replaces(value[i], best[i], places[i] >= 0)) best[i] = value[i], places[i] = place;
      }
    }
  }
}

KILN_KERNEL(pooling_backward, 256, 1, PoolingParams, params) {
  const Place at = thread_place();
  if (at.n >= params.images) return;
  const i64 c = static_cast<i64>(at.c);
  const element_t* const dy = static_cast<const element_t*>(params.dy) + at.n * Y_STRIDE_N +
                              c * (CHANNELS_INNER ? VECTOR : Y_STRIDE_C);
  const element_t* const x = static_cast<const element_t*>(params.x) + at.n * X_STRIDE_N +
                             c * (CHANNELS_INNER ? VECTOR : X_STRIDE_C);
  const bool dy_aligned = is_aligned<element_t, VECTOR>(params.dy);
  const bool x_aligned = is_aligned<element_t, VECTOR>(params.x);
  const i64 here = (static_cast<i64>(at.d) * IN_H + at.h) * IN_W + at.w;

  compute_t sum[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) sum[i] = 0;
  const Holders depth(at.d, STRIDE_D, PAD_D, DILATION_D, WINDOW_D, OUT_D);
  const Holders height(at.h, STRIDE_H, PAD_H, DILATION_H, WINDOW_H, OUT_H);
  const Holders width(at.w, STRIDE_W, PAD_W, DILATION_W, WINDOW_W, OUT_W);
#pragma unroll 1
  for (int o = depth.first; o <= depth.last; ++o) {
    if (!holds(at.d, o, STRIDE_D, PAD_D, DILATION_D)) continue;
#pragma unroll 1
    for (int p = height.first; p <= height.last; ++p) {
      if (!holds(at.h, p, STRIDE_H, PAD_H, DILATION_H)) continue;
#pragma unroll 2
      for (int q = width.first; q <= width.last; ++q) {
        if (!holds(at.w, q, STRIDE_W, PAD_W, DILATION_W)) continue;
        const Window window(o, p, q);
        compute_t gradient[VECTOR];
        load_vector(dy + static_cast<i64>(o) * Y_STRIDE_D + static_cast<i64>(p) * Y_STRIDE_H +
                        static_cast<i64>(q) * Y_STRIDE_W,
                    dy_aligned, gradient);
        if constexpr (MODE == MAX) {
          i64 places[VECTOR];
          find_maxima(x, x_aligned, window, places);
#pragma unroll
          for (int i = 0; i < VECTOR; ++i)
            if (places[i] == here) sum[i] += gradient[i];
        } else {
          const compute_t share = compute_t(1) / compute_t(window.divisor());
#pragma unroll
          for (int i = 0; i < VECTOR; ++i) sum[i] += gradient[i] * share;
        }
      }
    }
  }

  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  element_t* const dx =
      static_cast<element_t*>(params.out) + at.n * OUT_STRIDE_N +
      c * (CHANNELS_INNER ? VECTOR : OUT_STRIDE_C) + static_cast<i64>(at.d) * OUT_STRIDE_D +
      static_cast<i64>(at.h) * OUT_STRIDE_H + static_cast<i64>(at.w) * OUT_STRIDE_W;
  const bool dx_aligned = is_aligned<element_t, VECTOR>(params.out);
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) sum[i] *= alpha;
  if (beta != compute_t(0)) {
    compute_t before[VECTOR];
    load_vector(dx, dx_aligned, before);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) sum[i] += beta * before[i];
  }
  store_vector(dx, dx_aligned, sum);
}
