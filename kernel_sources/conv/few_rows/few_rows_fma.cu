// Few rows times a layer's weights of f32, on the FMA units (few_rows.cuh). Each lane multiplies
// its channels of two filters of each 16 by those of all rows; the four lanes of a filter add up.
#include "conv/few_rows/few_rows.cuh"

using LaneSums = compute_t[LEFT][2][MOST_ROWS];

device_inline void multiply(LaneSums& sums, const LaneWeights& weights, const u32 (&row)[4],
                            int number) {
#pragma unroll
  for (int l = 0; l < LEFT; ++l)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int i = 0; i < VECTOR; ++i)
        sums[l][half][number] += float_of(weights.words[l][half][i]) * float_of(row[i]);
}

KILN_KERNEL(few_rows_fma, THREADS, 1, GatherParams, params) {
  LaneSums sums = {};
  const Reader reader(params);
  const int warp = static_cast<int>(thread_x() / 32), lane = static_cast<int>(thread_x() % 32);
#pragma unroll 1
  for (int first = warp * RUN; first < CHANNELS; first += WARPS * RUN) {
    LaneWeights weights[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) reader.load(weights[i], first + i * CHUNK);
#pragma unroll
    for (int row = 0; row < MOST_ROWS; ++row) {
      if (row >= reader.images) continue;
#pragma unroll
      for (int i = 0; i < UNROLL; ++i) {
        u32 words[4];
        reader.load_row(words, row, first + i * CHUNK);
        multiply(sums, weights[i], words, row);
      }
    }
  }
  PartialSums& mine = partial_sums()[warp];
#pragma unroll
  for (int l = 0; l < LEFT; ++l)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int row = 0; row < MOST_ROWS; ++row) {
        compute_t sum = sums[l][half][row];
        sum += warp_shuffle_xor(sum, 1);
        sum += warp_shuffle_xor(sum, 2);
        if (lane % 4 == row % 4) mine[l * 16 + half * 8 + lane / 4][row] = sum;
      }
  store_sums(params);
}
