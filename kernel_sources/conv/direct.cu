// Forward convolution and data gradient by their definition: a thread per output, a loop over taps
// and channels. It takes every legal problem.
//
// Every phase is walked as if it had the most pixels of any; what lies past a phase's end is left.
#include "common/magic.cuh"
#include "conv/epilogue.cuh"
#include "conv/gather_params.h"
#include "target/kernel.cuh"

constexpr int THREADS = 256;

KILN_KERNEL(direct_gather, 256, 1, GatherParams, params) {
  u64 block = block_x();
  int phase = 0;
  if constexpr (PHASES > 1) {
    phase = static_cast<u32>(block / params.tiles);
    block -= phase * params.tiles;
  }
  // Outputs are counted image by image, so that index_t need only count those of about one image.
  const u64 first = block * THREADS;
  const u64 first_image = DIVIDE(BLOCK_DIV_OUTPUTS, first);
  index_t rest = static_cast<index_t>(first - first_image * DIV_OUTPUTS) + thread_x();
  const index_t later_image = DIVIDE(DIV_OUTPUTS, rest);
  rest -= later_image * DIV_OUTPUTS;
  const i64 n = static_cast<i64>(first_image + later_image);
  if (n >= params.images) return;

  // Threads run along the output as it lies: channels last, or the width last.
  index_t pixel, row;
  if constexpr (OUTPUT_ROWS_INNER) {
    pixel = DIVIDE(DIV_ALL_ROWS, rest);
    row = rest - pixel * DIV_ALL_ROWS;
  } else {
    row = DIVIDE(DIV_OPQ, rest);
    pixel = rest - row * DIV_OPQ;
  }
  const index_t o = DIVIDE(DIV_PQ, pixel);
  const index_t in_plane = pixel - o * DIV_PQ;
  const index_t p = DIVIDE(DIV_Q, in_plane);
  const index_t q = in_plane - p * DIV_Q;
  if (o >= OUT_O[phase] || p >= OUT_P[phase] || q >= OUT_Q[phase]) return;
  const index_t group = DIVIDE(DIV_ROWS, row);

  const i64 d0 = static_cast<i64>(o) * STRIDE_D + ORIGIN_D[phase];
  const i64 h0 = static_cast<i64>(p) * STRIDE_H + ORIGIN_H[phase];
  const i64 w0 = static_cast<i64>(q) * STRIDE_W + ORIGIN_W[phase];
  const element_t* const source =
      static_cast<const element_t*>(params.source) + n * SOURCE_STRIDE_N +
      static_cast<i64>(group) * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C);
  const element_t* const w = static_cast<const element_t*>(params.w) + W_FIRST[phase] +
                             static_cast<i64>(group) * W_STRIDE_GROUP +
                             static_cast<i64>(row - group * DIV_ROWS) * W_STRIDE_ROW;

  compute_t sum = 0;
#pragma unroll 1
  for (int t = 0; t < FILTER_T[phase]; ++t) {
    const i64 d = d0 + static_cast<i64>(t) * STEP_D;
    if (d < 0 || d >= SOURCE_D) continue;
#pragma unroll 1
    for (int r = 0; r < FILTER_R[phase]; ++r) {
      const i64 h = h0 + static_cast<i64>(r) * STEP_H;
      if (h < 0 || h >= SOURCE_H) continue;
#pragma unroll 1
      for (int s = 0; s < FILTER_S[phase]; ++s) {
        const i64 v = w0 + static_cast<i64>(s) * STEP_W;
        if (v < 0 || v >= SOURCE_W) continue;
        const element_t* from =
            source + d * SOURCE_STRIDE_D + h * SOURCE_STRIDE_H + v * SOURCE_STRIDE_W;
        const element_t* tap = w + static_cast<i64>(t) * W_STRIDE_T +
                               static_cast<i64>(r) * W_STRIDE_R + static_cast<i64>(s) * W_STRIDE_S;
#pragma unroll 4
        for (int c = 0; c < CHANNELS; ++c)
          sum += to_compute(from[static_cast<i64>(c) * SOURCE_STRIDE_C]) *
                 to_compute(tap[static_cast<i64>(c) * W_STRIDE_C]);
      }
    }
  }

  Epilogue epilogue;
  epilogue.out = static_cast<element_t*>(params.out);
  epilogue.z = static_cast<const element_t*>(params.z);
  epilogue.bias = static_cast<const element_t*>(params.bias);
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coefficient = static_cast<compute_t>(params.coefficient);
  const i64 at = OUT_FIRST[phase] + n * OUT_STRIDE_N + static_cast<i64>(row) * OUT_STRIDE_ROW +
                 static_cast<i64>(o) * OUT_STRIDE_O + static_cast<i64>(p) * OUT_STRIDE_P +
                 static_cast<i64>(q) * OUT_STRIDE_Q;
  i64 z_at = at;
  if constexpr (RESIDUAL)
    z_at = n * Z_STRIDE_N + static_cast<i64>(row) * Z_STRIDE_ROW +
           static_cast<i64>(o) * Z_STRIDE_O + static_cast<i64>(p) * Z_STRIDE_P +
           static_cast<i64>(q) * Z_STRIDE_Q;
  epilogue.store_one(at, z_at, sum, epilogue.bias_of(static_cast<int>(row)));
}
