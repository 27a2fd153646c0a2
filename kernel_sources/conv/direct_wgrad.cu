// Filter gradient by its definition: a thread block per element of dw, its threads taking turns at
// the pixels. It takes every legal problem; for depthwise filters, which leave a matrix product
// nothing to reuse, it is also the one there is.
#include "common/block_sum.cuh"
#include "common/magic.cuh"
#include "conv/epilogue.cuh"
#include "conv/wgrad_params.h"
#include "target/kernel.cuh"

constexpr int THREADS = 256;

KILN_KERNEL(direct_wgrad, 256, 1, WgradParams, params) {
  // Blocks along dw as a dense filter has it: tap within channel within filter.
  const u32 filter = DIVIDE(DIV_COLUMNS, block_x());
  const u32 column = block_x() - filter * DIV_COLUMNS;
  const u32 c = DIVIDE(DIV_TRS, column);
  u32 rest = column - c * DIV_TRS;
  const u32 t = DIVIDE(DIV_RS, rest);
  rest -= t * DIV_RS;
  const u32 r = DIVIDE(DIV_S, rest);
  const u32 s = rest - r * DIV_S;
  const u32 group = DIVIDE(DIV_ROWS, filter);

  const element_t* const x = static_cast<const element_t*>(params.x) +
                             static_cast<i64>(group * CHANNELS + c) * SOURCE_STRIDE_C;
  const element_t* const dy =
      static_cast<const element_t*>(params.dy) + static_cast<i64>(filter) * OUT_STRIDE_ROW;

  // A thread's pixels are THREADS apart, counted image by image.
  constexpr index_t IMAGES_A_TURN = THREADS / DIV_OPQ, PIXELS_A_TURN = THREADS % DIV_OPQ;
  const i64 d0 = static_cast<i64>(t) * STEP_D + ORIGIN_D[0];
  const i64 h0 = static_cast<i64>(r) * STEP_H + ORIGIN_H[0];
  const i64 w0 = static_cast<i64>(s) * STEP_W + ORIGIN_W[0];
  const i64 images = static_cast<i64>(params.pixels / DIV_OPQ);
  i64 n = thread_x() / DIV_OPQ;
  index_t pixel = thread_x() % DIV_OPQ;
  compute_t sum = 0;
#pragma unroll 1
  while (n < images) {
    const index_t o = DIVIDE(DIV_PQ, pixel);
    const index_t in_plane = pixel - o * DIV_PQ;
    const index_t p = DIVIDE(DIV_Q, in_plane);
    const index_t q = in_plane - p * DIV_Q;
    const i64 d = static_cast<i64>(o) * STRIDE_D + d0;
    const i64 h = static_cast<i64>(p) * STRIDE_H + h0;
    const i64 w = static_cast<i64>(q) * STRIDE_W + w0;
    if (d >= 0 && d < SOURCE_D && h >= 0 && h < SOURCE_H && w >= 0 && w < SOURCE_W) {
      const element_t at_x =
          x[n * SOURCE_STRIDE_N + d * SOURCE_STRIDE_D + h * SOURCE_STRIDE_H + w * SOURCE_STRIDE_W];
      const element_t at_dy =
          dy[n * OUT_STRIDE_N + static_cast<i64>(o) * OUT_STRIDE_O +
             static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q];
      sum += to_compute(at_x) * to_compute(at_dy);
    }
    n += IMAGES_A_TURN;
    pixel += PIXELS_A_TURN;
    if (pixel >= DIV_OPQ) {
      pixel -= DIV_OPQ;
      ++n;
    }
  }

  sum = block_sum<THREADS>(sum, 0);
  if (thread_x() != 0) return;
  Epilogue epilogue;
  epilogue.out = static_cast<element_t*>(params.dw);
  epilogue.z = epilogue.out;
  epilogue.bias = nullptr;
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coefficient = 0;
  const i64 at = static_cast<i64>(filter) * W_STRIDE_ROW + static_cast<i64>(c) * W_STRIDE_C +
                 static_cast<i64>(t) * W_STRIDE_T + static_cast<i64>(r) * W_STRIDE_R +
                 static_cast<i64>(s) * W_STRIDE_S;
  epilogue.store_one(at, at, sum, compute_t(0));
}
