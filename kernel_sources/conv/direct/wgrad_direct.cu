// Filter gradient by its definition: each block computes one element of dw; its threads take the
// pixels in turn. It takes every legal problem.
#include "common/block_sum.cuh"
#include "common/magic.cuh"
#include "conv/geometry/gradient_sum.cuh"
#include "conv/geometry/wgrad_params.h"
#include "conv/store/epilogue.cuh"
#include "target/kernel.cuh"

constexpr int THREADS = 256;

KILN_KERNEL(wgrad_direct, 256, 1, WgradParams, params) {
  // Blocks are numbered along dw as if it were dense: taps fastest, then channels, then filters.
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

  compute_t sum =
      gradient_sum<i64, THREADS, false>(x, dy, t, r, s, params.pixels / DIV_OPQ, thread_x());
  sum = block_sum<THREADS>(sum, 0);
  if (thread_x() != 0) return;
  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.dw);
  epilogue.z = epilogue.out;
  epilogue.bias = nullptr;
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = {};
  const i64 at = static_cast<i64>(filter) * W_STRIDE_ROW + static_cast<i64>(c) * W_STRIDE_C +
                 static_cast<i64>(t) * W_STRIDE_T + static_cast<i64>(r) * W_STRIDE_R +
                 static_cast<i64>(s) * W_STRIDE_S;
  epilogue.store_one(at, at, sum, compute_t(0));
}
