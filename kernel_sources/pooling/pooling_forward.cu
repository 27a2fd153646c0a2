// Pooling: a thread per output element, or per VECTOR channels of one where channels lie innermost.
#include "pooling/window.cuh"

KILN_KERNEL(pooling_forward, 256, 1, PoolingParams, params) {
  const Place place = thread_place();
  if (place.n >= params.images) return;
  const element_t* const x = static_cast<const element_t*>(params.x) + place.n * X_STRIDE_N +
                             static_cast<i64>(place.c) * (CHANNELS_INNER ? VECTOR : X_STRIDE_C);
  const bool x_aligned = is_aligned<element_t, VECTOR>(params.x);
  const Window window(place.d, place.h, place.w);

  compute_t result[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i)
    result[i] = MODE == 0 ? -math_infinity<compute_t>() : compute_t(0);
#pragma unroll 1
  for (int t = window.d.begin; t < window.d.end; ++t) {
#pragma unroll(WINDOW_H <= 3 ? WINDOW_H : 1)
    for (int r = 0; r < WINDOW_H; ++r) {
      if (!INSIDE && (r < window.h.begin || r >= window.h.end)) continue;
      const element_t* const row =
          x + static_cast<offset_t>(window.d.first + t * DILATION_D) * X_STRIDE_D +
          static_cast<offset_t>(window.h.first + r * DILATION_H) * X_STRIDE_H +
          static_cast<offset_t>(window.w.first) * X_STRIDE_W;
#pragma unroll(WINDOW_W <= 8 ? WINDOW_W : 4)
      for (int s = 0; s < WINDOW_W; ++s) {
        if (!INSIDE && (s < window.w.begin || s >= window.w.end)) continue;
        compute_t value[VECTOR];
        load_vector(row + static_cast<offset_t>(s) * (DILATION_W * X_STRIDE_W), x_aligned, value);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
          if constexpr (MODE != 0)
            result[i] += value[i];
          else if constexpr (PROPAGATE_NAN)
            result[i] = math_max_nan(result[i], value[i]);
          else
            result[i] = math_max(result[i], value[i]);
        }
      }
    }
  }
  const int divisor = window.divisor();
  const compute_t share = divisor == 0 ? compute_t(0) : compute_t(1) / compute_t(divisor);
  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    if constexpr (MODE != 0) result[i] *= share;
    result[i] *= alpha;
  }
  element_t* const y = static_cast<element_t*>(params.out) + place.n * OUT_STRIDE_N +
                       static_cast<i64>(place.c) * (CHANNELS_INNER ? VECTOR : OUT_STRIDE_C) +
                       static_cast<i64>(place.d) * OUT_STRIDE_D +
                       static_cast<i64>(place.h) * OUT_STRIDE_H +
                       static_cast<i64>(place.w) * OUT_STRIDE_W;
  const bool y_aligned = is_aligned<element_t, VECTOR>(params.out);
  if (beta != compute_t(0)) {
    compute_t before[VECTOR];
    load_vector(y, y_aligned, before);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) result[i] += beta * before[i];
  }
  store_vector(y, y_aligned, result);
}
