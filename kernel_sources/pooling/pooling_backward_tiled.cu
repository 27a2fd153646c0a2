// The gradient of pooling in two dimensions, dense windows: a block takes a TILE_H x TILE_W tile of
// dx in VECTOR * LANES channels of one image.
//
// First it works out every window that reaches into the tile once, into shared memory: what of dy
// it hands on and, of a maximum, to which place. Then each element of dx adds up what the few
// windows that hold it hand to it, in the order of the outputs.
#include "pooling/window.cuh"
#include "target/shared_memory.cuh"

constexpr int WINDOWS_H = TILE_WINDOWS_H, WINDOWS_W = TILE_WINDOWS_W;
constexpr int WINDOWS = WINDOWS_H * WINDOWS_W * LANES;
constexpr int PLACES = MODE == 0 ? WINDOWS * VECTOR : 1;
constexpr u32 PLACES_AT = (WINDOWS * VECTOR * sizeof(compute_t) + 15) / 16 * 16;

// The first output whose window reaches place `at` or beyond.
device_inline int first_output(int at, int stride, int pad, int window) {
  const int low = at + pad - (window - 1);
  return low <= 0
             ? 0
             : static_cast<int>((static_cast<u32>(low) + stride - 1) / static_cast<u32>(stride));
}
// The last output whose window begins at place `at` or before.
device_inline int last_output(int at, int stride, int pad, int outputs) {
  const int last = static_cast<int>(static_cast<u32>(at + pad) / static_cast<u32>(stride));
  return last < outputs ? last : outputs - 1;
}

// Where each channel's first maximal tap lies: its place in the plane; -1: no tap counts.
device_inline void find_maxima(const element_t* x, bool aligned, const Window& window,
                               int (&places)[VECTOR]) {
  compute_t best[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) places[i] = -1, best[i] = 0;
#pragma unroll(WINDOW_H <= 3 ? WINDOW_H : 1)
  for (int r = 0; r < WINDOW_H; ++r) {
    if (!INSIDE && (r < window.h.begin || r >= window.h.end)) continue;
    const int h = window.h.first + r;
    const element_t* const row = x + static_cast<offset_t>(h) * X_STRIDE_H +
                                 static_cast<offset_t>(window.w.first) * X_STRIDE_W;
#pragma unroll(WINDOW_W <= 4 ? WINDOW_W : 1)
    for (int s = 0; s < WINDOW_W; ++s) {
      if (!INSIDE && (s < window.w.begin || s >= window.w.end)) continue;
      compute_t value[VECTOR];
      load_vector(row + static_cast<offset_t>(s) * X_STRIDE_W, aligned, value);
      const int place = h * IN_W + window.w.first + s;
#pragma unroll
      for (int i = 0; i < VECTOR; ++i)
        if (replaces(value[i], best[i], places[i] >= 0)) best[i] = value[i], places[i] = place;
    }
  }
}

KILN_KERNEL(pooling_backward_tiled, 256, 2, PoolingParams, params) {
  compute_t* const gradients = shared_array<compute_t, WINDOWS * VECTOR>(0);
  int* const places = shared_array<int, PLACES>(PLACES_AT);

  // Blocks in order: tiles along the width, along the height, runs of channels, images.
  u32 rest = DIVIDE(DIV_TILES_W, block_x());
  const int first_w = static_cast<int>(block_x() - rest * DIV_TILES_W) * TILE_W;
  u32 next = DIVIDE(DIV_TILES_H, rest);
  const int first_h = static_cast<int>(rest - next * DIV_TILES_H) * TILE_H;
  const u32 n = DIVIDE(DIV_RUNS, next);
  const int first_c = static_cast<int>(next - n * DIV_RUNS) * (VECTOR * LANES);

  const element_t* const dy = static_cast<const element_t*>(params.dy) +
                              static_cast<i64>(n) * Y_STRIDE_N +
                              static_cast<i64>(first_c) * Y_STRIDE_C;
  const element_t* const x = static_cast<const element_t*>(params.x) +
                             static_cast<i64>(n) * X_STRIDE_N +
                             static_cast<i64>(first_c) * X_STRIDE_C;
  const bool dy_aligned = is_aligned<element_t, VECTOR>(params.dy);
  const bool x_aligned = is_aligned<element_t, VECTOR>(params.x);
  const int first_p = first_output(first_h, STRIDE_H, PAD_H, WINDOW_H);
  const int first_q = first_output(first_w, STRIDE_W, PAD_W, WINDOW_W);

#pragma unroll 1
  for (int index = thread_x(); index < WINDOWS; index += THREADS) {
    const int lane = index % LANES, window_index = index / LANES;
    const int p = first_p + window_index / WINDOWS_W, q = first_q + window_index % WINDOWS_W;
    if (p >= OUT_H || q >= OUT_W || first_c + lane * VECTOR >= CHANNELS) continue;
    compute_t gradient[VECTOR];
    load_vector(dy + (static_cast<offset_t>(p) * Y_STRIDE_H +
                      static_cast<offset_t>(q) * Y_STRIDE_W + lane * (VECTOR * Y_STRIDE_C)),
                dy_aligned, gradient);
    const Window window(0, p, q);
    if constexpr (MODE == 0) {
      int at[VECTOR];
      find_maxima(x + lane * static_cast<offset_t>(VECTOR * X_STRIDE_C), x_aligned, window, at);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) places[i * WINDOWS + index] = at[i];
    } else {
      const int divisor = window.divisor();
      const compute_t share = divisor == 0 ? compute_t(0) : compute_t(1) / compute_t(divisor);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) gradient[i] *= share;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) gradients[i * WINDOWS + index] = gradient[i];
  }
  block_barrier();

  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  element_t* const dx = static_cast<element_t*>(params.out) + static_cast<i64>(n) * OUT_STRIDE_N +
                        static_cast<i64>(first_c) * OUT_STRIDE_C;
  const bool dx_aligned = is_aligned<element_t, VECTOR>(params.out);
#pragma unroll 1
  for (int index = thread_x(); index < TILE_H * TILE_W * LANES; index += THREADS) {
    const int lane = index % LANES, pixel = index / LANES;
    const int h = first_h + pixel / TILE_W, w = first_w + pixel % TILE_W;
    if (h >= IN_H || w >= IN_W || first_c + lane * VECTOR >= CHANNELS) continue;
    const int here = h * IN_W + w;
    const int p_begin = first_output(h, STRIDE_H, PAD_H, WINDOW_H) - first_p;
    const int p_end = last_output(h, STRIDE_H, PAD_H, OUT_H) - first_p;
    const int q_begin = first_output(w, STRIDE_W, PAD_W, WINDOW_W) - first_q;
    const int q_end = last_output(w, STRIDE_W, PAD_W, OUT_W) - first_q;
    compute_t sum[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) sum[i] = 0;
#pragma unroll(HOLDERS_H)
    for (int i = 0; i < HOLDERS_H; ++i) {
      const int p = p_begin + i;
      if (p > p_end) break;
#pragma unroll(HOLDERS_W)
      for (int j = 0; j < HOLDERS_W; ++j) {
        const int q = q_begin + j;
        if (q > q_end) break;
        const int at = (p * WINDOWS_W + q) * LANES + lane;
#pragma unroll
        for (int k = 0; k < VECTOR; ++k)
          if (MODE != 0 || places[k * WINDOWS + at] == here) sum[k] += gradients[k * WINDOWS + at];
      }
    }
    element_t* const to =
        dx + (static_cast<offset_t>(h) * OUT_STRIDE_H + static_cast<offset_t>(w) * OUT_STRIDE_W +
              lane * static_cast<offset_t>(VECTOR * OUT_STRIDE_C));
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) sum[i] *= alpha;
    if (beta != compute_t(0)) {
      compute_t before[VECTOR];
      load_vector(to, dx_aligned, before);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) sum[i] += beta * before[i];
    }
    store_vector(to, dx_aligned, sum);
  }
}
