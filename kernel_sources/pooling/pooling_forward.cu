// Pooling. A thread computes ROWS outputs in a column, of one channel or, with channels innermost,
// of VECTOR channels. A row of x that several of its outputs need is read once, and reduced along
// the width once.
#include "pooling/window.cuh"

constexpr int UNION_H = (ROWS - 1) * STRIDE_H + WINDOW_H;  // rows of x, DILATION_H apart
static_assert(ROWS == 1 || DILATION_H == 1);
constexpr int UNROLL_H = UNION_H * WINDOW_W <= 64 ? UNION_H : 1;
constexpr int UNROLL_W = WINDOW_W <= 8 ? WINDOW_W : 4;

device_inline compute_t nothing() {
  return MODE == MAX ? -math_infinity<compute_t>() : compute_t(0);
}

device_inline compute_t combine(compute_t a, compute_t b) {
  if constexpr (MODE != MAX) return a + b;
  return PROPAGATE_NAN ? math_max_nan(a, b) : math_max(a, b);
}

struct Outputs {
  compute_t result[ROWS][VECTOR];

  // Reduces a row of taps, the first of which is at `row`, into the outputs that need it.
  device_inline void add_row(const element_t* row, bool aligned, const Taps& taps, int r) {
    compute_t joined[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) joined[i] = nothing();
#pragma unroll UNROLL_W
    for (int s = 0; s < WINDOW_W; ++s) {
      if (!INSIDE && (s < taps.begin || s >= taps.end)) continue;
      compute_t value[VECTOR];
      load_vector(row + static_cast<offset_t>(s) * (DILATION_W * X_STRIDE_W), aligned, value);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) joined[i] = combine(joined[i], value[i]);
    }
#pragma unroll
    for (int o = 0; o < ROWS; ++o)
      if (r >= o * STRIDE_H && r < o * STRIDE_H + WINDOW_H)
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) result[o][i] = combine(result[o][i], joined[i]);
  }

  device_inline void add_all(const element_t* x, bool aligned, const Window& window) {
#pragma unroll
    for (int o = 0; o < ROWS; ++o)
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) result[o][i] = nothing();
#pragma unroll 1
    for (int t = window.d.begin; t < window.d.end; ++t) {
      const element_t* const plane =
          x + static_cast<offset_t>(window.d.first + t * DILATION_D) * X_STRIDE_D +
          static_cast<offset_t>(window.w.first) * X_STRIDE_W;
#pragma unroll UNROLL_H
      for (int r = 0; r < UNION_H; ++r) {
        int h = window.h.first + r * DILATION_H;
        if (!INSIDE && (h < 0 || h >= IN_H)) continue;
        // Rows below x's last one belong only to outputs that do not exist, so any row may be read.
        if (INSIDE && r >= WINDOW_H && h >= IN_H) h = IN_H - 1;
        add_row(plane + static_cast<offset_t>(h) * X_STRIDE_H, aligned, window.w, r);
      }
    }
  }

  device_inline void finish(int o, element_t* y, bool aligned, const Window& window,
                            compute_t alpha, compute_t beta) {
    const int divisor = window.divisor();
    const compute_t share = divisor == 0 ? compute_t(0) : compute_t(1) / compute_t(divisor);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      if constexpr (MODE != MAX) result[o][i] *= share;
      result[o][i] *= alpha;
    }
    if (beta != compute_t(0)) {
      compute_t before[VECTOR];
      load_vector(y, aligned, before);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) result[o][i] += beta * before[i];
    }
    store_vector(y, aligned, result[o]);
  }
};

KILN_KERNEL(pooling_forward, 256, 4, PoolingParams, params) {
  const Place place = thread_place();
  if (place.n >= params.images) return;
  const int first_p = place.h * ROWS;
  const element_t* const x = static_cast<const element_t*>(params.x) + place.n * X_STRIDE_N +
                             static_cast<i64>(place.c) * (CHANNELS_INNER ? VECTOR : X_STRIDE_C);
  const Window window(place.d, first_p, place.w);

  Outputs outputs;
  // The branch is around all loads, so that they are issued together.
  if (VECTOR == 1 || is_aligned<element_t, VECTOR>(params.x))
    outputs.add_all(x, true, window);
  else
    outputs.add_all(x, false, window);

  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  element_t* const y = static_cast<element_t*>(params.out) + place.n * OUT_STRIDE_N +
                       static_cast<i64>(place.c) * (CHANNELS_INNER ? VECTOR : OUT_STRIDE_C) +
                       static_cast<i64>(place.d) * OUT_STRIDE_D +
                       static_cast<i64>(first_p) * OUT_STRIDE_H +
                       static_cast<i64>(place.w) * OUT_STRIDE_W;
  const bool y_aligned = is_aligned<element_t, VECTOR>(params.out);
#pragma unroll
  for (int o = 0; o < ROWS; ++o) {
    if (ROWS > 1 && first_p + o >= OUT_H) return;
    outputs.finish(o, y + o * OUT_STRIDE_H, y_aligned, Window(place.d, first_p + o, place.w), alpha,
                   beta);
  }
}
