// Forward passes of one tap on at most MOST_ROWS images of one pixel: few rows of a matrix times
// the weights of a linear layer. Only the weights take time, and only to be read once.
//
// A block has 16 * LEFT filters, and its WARPS warps share the channels. A warp reads UNROLL chunks
// of 64 bytes of a filter at a time: lane l has 16 bytes of filters l / 4 and l / 4 + 8 of each 16,
// and the same channels of rows of x, from L1 or L2. So both operands come straight to the
// registers that multiply them, in whole sectors, without shared memory; the order of the channels
// in a sum does not matter to it. Warps leave their sums in shared memory, where they are added by
// rank.
#pragma once

#include "common/compute_type.cuh"
#include "conv/geometry/gather_params.h"
#include "conv/store/epilogue.cuh"
#include "target/kernel.cuh"
#include "target/mma.cuh"
#include "target/shared_memory.cuh"
#include "target/vector_access.cuh"

constexpr int THREADS = 32 * WARPS;
constexpr int FILTERS = 16 * LEFT;
constexpr int VECTOR = 16 / static_cast<int>(sizeof(element_t));  // channels of 16 bytes
constexpr int CHUNK = 4 * VECTOR;                                 // what four lanes read of a row
constexpr int RUN = UNROLL * CHUNK;                               // what a warp reads of it at once
static_assert(CHANNELS % VECTOR == 0 && MOST_ROWS % 8 == 0);

// 16 bytes of the filters l / 4 and l / 4 + 8 of each 16.
struct LaneWeights {
  u32 words[LEFT][2][4];
};

// Where a lane reads: filter() of the block's filters and channel() of a run.
struct Reader {
  const element_t *w, *x;
  int filter, channel;  // of the first vector; in the run
  int images;

  device_inline explicit Reader(const GatherParams& params)
      : w(static_cast<const element_t*>(params.w)),
        x(static_cast<const element_t*>(params.source)),
        filter(static_cast<int>(block_x()) * FILTERS + static_cast<int>(thread_x() % 32 / 4)),
        channel(static_cast<int>(thread_x() % 4) * VECTOR),
        images(static_cast<int>(params.images)) {}

  device_inline void load(LaneWeights& weights, int first) const {
    const int at = first + channel;
#pragma unroll
    for (int l = 0; l < LEFT; ++l)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = filter + l * 16 + half * 8;
        load_words<4>(weights.words[l][half], w + (static_cast<i64>(row) * W_STRIDE_ROW + at),
                      row < ROWS && at < CHANNELS);
      }
  }
  // The same channels of a row of x.
  device_inline void load_row(u32 (&words)[4], int row, int first) const {
    const int at = first + channel;
    load_words<4>(words, x + (static_cast<i64>(row) * SOURCE_STRIDE_N + at),
                  row < images && at < CHANNELS);
  }
};

using PartialSums = compute_t[FILTERS][MOST_ROWS];

device_inline PartialSums* partial_sums() {
  return reinterpret_cast<PartialSums*>(shared_array<compute_t, WARPS * FILTERS * MOST_ROWS>(0));
}

// Adds up what all warps have put into partial_sums(), and stores it.
device_inline void store_sums(const GatherParams& params) {
  const PartialSums* const sums = partial_sums();
  block_barrier();
  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out);
  epilogue.z = static_cast<const output_t*>(params.z);
  epilogue.bias = static_cast<const output_t*>(params.bias);
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
#pragma unroll 1
  for (int i = static_cast<int>(thread_x()); i < FILTERS * MOST_ROWS; i += THREADS) {
    const int filter = i % FILTERS, image = i / FILTERS;
    const int row = static_cast<int>(block_x()) * FILTERS + filter;
    if (row >= ROWS || image >= params.images) continue;
    compute_t sum = 0;
#pragma unroll
    for (int warp = 0; warp < WARPS; ++warp) sum += sums[warp][filter][image];
    epilogue.store_one(
        static_cast<i64>(image) * OUT_STRIDE_N + static_cast<i64>(row) * OUT_STRIDE_ROW,
        static_cast<i64>(image) * Z_STRIDE_N + static_cast<i64>(row) * Z_STRIDE_ROW, sum,
        epilogue.bias_of(row));
  }
}
