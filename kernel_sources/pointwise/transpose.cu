// out = alpha * in + beta * out where the operands' innermost dimensions differ: A is the output's,
// B the input's. A block moves a TILE_A x TILE_B tile through shared memory, reading along B and
// writing along A, vectors on either side.
//
// The tile keeps TILE_B values a row. Groups of four columns are permuted from four rows to four
// rows, so that both the rows written and the columns read fall into 32 different banks.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "pointwise/pointwise_params.h"
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = 256;

device_inline int tile_index(int a, int b) {
  const int group = b / 4 ^ (a / 4 & 7);
  return a * TILE_B + group * 4 + b % 4;
}

KILN_KERNEL(transpose, 256, 1, PointwiseParams, params) {
  compute_t* const tile = shared_array<compute_t, TILE_A * TILE_B>(0);

  // Blocks in order: tiles along A, tiles along B, the other axes, images.
  u32 rest = DIVIDE(DIV_TILES_A, block_x());
  const int first_a = (block_x() - rest * DIV_TILES_A) * TILE_A;
  u32 next = DIVIDE(DIV_TILES_B, rest);
  const int first_b = (rest - next * DIV_TILES_B) * TILE_B;
  rest = DIVIDE(DIV_SIZE_1, next);
  const u32 a1 = next - rest * DIV_SIZE_1;
  const u32 n = DIVIDE(DIV_SIZE_0, rest);
  const u32 a0 = rest - n * DIV_SIZE_0;

  const IN0_t* const in = static_cast<const IN0_t*>(params.in[0]) +
                          static_cast<i64>(n) * IN0_STRIDE_N + static_cast<i64>(a0) * IN0_STRIDE_0 +
                          static_cast<i64>(a1) * IN0_STRIDE_1;
  OUT_t* const out = static_cast<OUT_t*>(params.out) + static_cast<i64>(n) * OUT_STRIDE_N +
                     static_cast<i64>(a0) * OUT_STRIDE_0 + static_cast<i64>(a1) * OUT_STRIDE_1;

  const bool in_aligned = is_aligned<IN0_t, VECTOR_B>(params.in[0]);
  constexpr int RUNS_B = TILE_B / VECTOR_B;
  constexpr int READS = TILE_A * RUNS_B / THREADS;
  compute_t values[READS][VECTOR_B];
#pragma unroll
  for (int i = 0; i < READS; ++i) {
    const int at = i * THREADS + thread_x();
    const int a = first_a + at / RUNS_B, b = first_b + at % RUNS_B * VECTOR_B;
    if (a < SIZE_A && b < SIZE_B)
      load_vector(in + static_cast<i64>(a) * IN0_STRIDE_A + b, in_aligned, values[i]);
  }
#pragma unroll
  for (int i = 0; i < READS; ++i) {
    const int at = i * THREADS + thread_x();
#pragma unroll
    for (int j = 0; j < VECTOR_B; ++j)
      tile[tile_index(at / RUNS_B, at % RUNS_B * VECTOR_B + j)] = values[i][j];
  }
  block_barrier();

  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  const bool out_aligned = is_aligned<OUT_t, VECTOR_A>(params.out);
  constexpr int RUNS_A = TILE_A / VECTOR_A;
  constexpr int WRITES = TILE_B * RUNS_A / THREADS;
#pragma unroll
  for (int i = 0; i < WRITES; ++i) {
    const int at = i * THREADS + thread_x();
    const int in_a = at % RUNS_A * VECTOR_A, in_b = at / RUNS_A;
    if (first_a + in_a >= SIZE_A || first_b + in_b >= SIZE_B) continue;
    OUT_t* const to = out + static_cast<i64>(first_b + in_b) * OUT_STRIDE_B + first_a + in_a;
    compute_t result[VECTOR_A];
#pragma unroll
    for (int j = 0; j < VECTOR_A; ++j) result[j] = alpha * tile[tile_index(in_a + j, in_b)];
    if (beta != compute_t(0)) {
      compute_t before[VECTOR_A];
      load_vector(to, out_aligned, before);
#pragma unroll
      for (int j = 0; j < VECTOR_A; ++j) result[j] += beta * before[j];
    }
    store_vector(to, out_aligned, result);
  }
}
