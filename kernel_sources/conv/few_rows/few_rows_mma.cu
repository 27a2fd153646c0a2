// Few rows times a layer's weights of 16 bits, on the tensor cores (few_rows.cuh). Operand A is the
// filters, operand B the rows. Of a vector of 8 channels, words 0 and 1 are a lane's two pairs of
// the first product, words 2 and 3 those of the second one, in both operands.
#include "conv/few_rows/few_rows.cuh"
#include "target/sum_registers.cuh"

constexpr int RIGHT = MOST_ROWS / 8;
using Sums = SumRegisters<float, LEFT, RIGHT, false>;

struct LaneRows {
  u32 words[RIGHT][4];
};

template <int L = 0>
device_inline void multiply(Sums& sums, const LaneWeights& weights, const LaneRows& rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const u32(&low)[4] = weights.words[L][0], (&high)[4] = weights.words[L][1];
    const u32 left[4] = {low[half * 2], high[half * 2], low[half * 2 + 1], high[half * 2 + 1]};
    u32 right[RIGHT][2];
#pragma unroll
    for (int r = 0; r < RIGHT; ++r)
      right[r][0] = rows.words[r][half * 2], right[r][1] = rows.words[r][half * 2 + 1];
    mma_16x8x16<element_t, L>(sums, left, right);
  }
  if constexpr (L + 1 < LEFT) multiply<L + 1>(sums, weights, rows);
}

template <int L, int R>
device_inline void put(const Sums& sums, PartialSums& to) {
  const int lane = static_cast<int>(thread_x() % 32);
  float four[4];
  sums.template take<L, R>(four);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    to[L * 16 + lane / 4 + i / 2 * 8][R * 8 + lane % 4 * 2 + i % 2] = four[i];
  if constexpr (R + 1 < RIGHT)
    put<L, R + 1>(sums, to);
  else if constexpr (L + 1 < LEFT)
    put<L + 1, 0>(sums, to);
}

KILN_KERNEL(few_rows_mma, THREADS, 1, GatherParams, params) {
  Sums sums;
  sums.declare();
  sums.clear();
  const Reader reader(params);
  const int warp = static_cast<int>(thread_x() / 32);
#pragma unroll 1
  for (int first = warp * RUN; first < CHANNELS; first += WARPS * RUN) {
    LaneWeights weights[UNROLL];
    LaneRows rows[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) reader.load(weights[i], first + i * CHUNK);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i)
#pragma unroll
      for (int r = 0; r < RIGHT; ++r)
        reader.load_row(rows[i].words[r], r * 8 + static_cast<int>(thread_x() % 32 / 4),
                        first + i * CHUNK);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) multiply(sums, weights[i], rows[i]);
  }
  put<0, 0>(sums, partial_sums()[warp]);
  store_sums(params);
}
