// Forward convolution by its definition: a thread per output, a loop over taps and channels. It
// takes every legal problem; for depthwise filters it is the right kernel, since they leave a
// matrix product nothing to reuse.
#include "common/compute_type.cuh"
#include "common/magic.cuh"
#include "conv/forward_params.h"
#include "target/kernel.cuh"

constexpr int THREADS = 256;

KILN_KERNEL(direct_forward, 256, 1, ForwardParams, params) {
  // Outputs are counted image by image, so that index_t need only count those of about one image.
  const u64 first = static_cast<u64>(block_x()) * THREADS;
  const u64 first_image = DIVIDE(BLOCK_DIV_KOPQ, first);
  index_t rest = static_cast<index_t>(first - first_image * DIV_KOPQ) + thread_x();
  const index_t later_image = DIVIDE(DIV_KOPQ, rest);
  rest -= later_image * DIV_KOPQ;
  const i64 n = static_cast<i64>(first_image + later_image);
  if (n >= params.images) return;

  // Threads run along y as it lies: channels last, or the width last.
  index_t pixel, k;
  if constexpr (OUTPUT_CHANNELS_INNER) {
    pixel = DIVIDE(DIV_K, rest);
    k = rest - pixel * DIV_K;
  } else {
    k = DIVIDE(DIV_OPQ, rest);
    pixel = rest - k * DIV_OPQ;
  }
  const index_t o = DIVIDE(DIV_PQ, pixel);
  const index_t row = pixel - o * DIV_PQ;
  const index_t p = DIVIDE(DIV_Q, row);
  const index_t q = row - p * DIV_Q;
  const index_t group = DIVIDE(DIV_FILTERS, k);

  const i64 d0 = static_cast<i64>(o) * STRIDE_D + ORIGIN_D;
  const i64 h0 = static_cast<i64>(p) * STRIDE_H + ORIGIN_H;
  const i64 w0 = static_cast<i64>(q) * STRIDE_W + ORIGIN_W;
  const element_t* const x = static_cast<const element_t*>(params.x) + n * X_STRIDE_N +
                             static_cast<i64>(group) * (static_cast<i64>(CHANNELS) * X_STRIDE_C);
  const element_t* const w =
      static_cast<const element_t*>(params.w) + static_cast<i64>(k) * W_STRIDE_K;

  compute_t sum = 0;
#pragma unroll 1
  for (int t = 0; t < FILTER_T; ++t) {
    const i64 d = d0 + static_cast<i64>(t) * STEP_D;
    if (d < 0 || d >= IN_D) continue;
#pragma unroll 1
    for (int r = 0; r < FILTER_R; ++r) {
      const i64 h = h0 + static_cast<i64>(r) * STEP_H;
      if (h < 0 || h >= IN_H) continue;
#pragma unroll 1
      for (int s = 0; s < FILTER_S; ++s) {
        const i64 v = w0 + static_cast<i64>(s) * STEP_W;
        if (v < 0 || v >= IN_W) continue;
        const element_t* from = x + d * X_STRIDE_D + h * X_STRIDE_H + v * X_STRIDE_W;
        const element_t* tap = w + static_cast<i64>(t) * W_STRIDE_T +
                               static_cast<i64>(r) * W_STRIDE_R + static_cast<i64>(s) * W_STRIDE_S;
#pragma unroll 4
        for (int c = 0; c < CHANNELS; ++c)
          sum += to_compute(from[static_cast<i64>(c) * X_STRIDE_C]) *
                 to_compute(tap[static_cast<i64>(c) * W_STRIDE_C]);
      }
    }
  }

  element_t* const y = static_cast<element_t*>(params.y) + n * Y_STRIDE_N +
                       static_cast<i64>(k) * Y_STRIDE_K + static_cast<i64>(o) * Y_STRIDE_O +
                       static_cast<i64>(p) * Y_STRIDE_P + static_cast<i64>(q) * Y_STRIDE_Q;
  compute_t value = static_cast<compute_t>(params.alpha) * sum;
  const compute_t beta = static_cast<compute_t>(params.beta);
  if (beta != compute_t(0)) value += beta * to_compute(*y);
  *y = from_compute<element_t>(value);
}
