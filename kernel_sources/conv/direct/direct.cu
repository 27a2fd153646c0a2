// Forward convolution and data gradient by their definition: each thread computes one output in a
// loop over taps and channels. It takes every legal problem.
//
// Every phase is processed as if it had as many pixels as the largest one; threads past its end
// exit.
#include "common/magic.cuh"
#include "conv/geometry/gather_sum.cuh"
#include "conv/store/epilogue.cuh"
#include "target/kernel.cuh"

constexpr int THREADS = 256;

KILN_KERNEL(direct_gather, 256, 1, GatherParams, params) {
  u64 block = block_x();
  int phase = 0;
  if constexpr (PHASES > 1) {
    phase = static_cast<u32>(block / params.tiles);
    block -= phase * params.tiles;
  }
  // Outputs are counted image by image, so that index_t need only count the outputs of about one
  // image.
  const u64 first = block * THREADS;
  const u64 first_image = DIVIDE(BLOCK_DIV_OUTPUTS, first);
  index_t rest = static_cast<index_t>(first - first_image * DIV_OUTPUTS) + thread_x();
  const index_t later_image = DIVIDE(DIV_OUTPUTS, rest);
  rest -= later_image * DIV_OUTPUTS;
  const i64 n = static_cast<i64>(first_image + later_image);
  if (n >= params.images) return;

  // Threads run along the output in memory order: channels last, or the width last.
  index_t pixel, row;
  if (OUTPUT_ROWS_INNER) {
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
  const index_t in_group = row - group * DIV_ROWS;

  const compute_t sum = gather_sum<i64, false>(params, n, group, in_group, phase, o, p, q);

  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out);
  epilogue.z = static_cast<const output_t*>(params.z);
  epilogue.bias =
      static_cast<const output_t*>(params.bias) + static_cast<i64>(group) * BIAS_STRIDE_GROUP;
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
  const i64 at = OUT_FIRST[phase] + n * OUT_STRIDE_N + static_cast<i64>(group) * OUT_STRIDE_GROUP +
                 static_cast<i64>(in_group) * OUT_STRIDE_ROW + static_cast<i64>(o) * OUT_STRIDE_O +
                 static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q;
  i64 z_at = at;
  if constexpr (RESIDUAL)
    z_at = Z_FIRST[phase] + n * Z_STRIDE_N + static_cast<i64>(group) * Z_STRIDE_GROUP +
           static_cast<i64>(in_group) * Z_STRIDE_ROW + static_cast<i64>(o) * Z_STRIDE_O +
           static_cast<i64>(p) * Z_STRIDE_P + static_cast<i64>(q) * Z_STRIDE_Q;
  epilogue.store_one(at, z_at, sum, epilogue.bias_of(static_cast<int>(in_group)));
}
