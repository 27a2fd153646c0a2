// Forward convolution and data gradient with few channels in the output (up to MOST_ROWS a group):
// a matrix product would leave most of a tile idle, so each thread slides along a row instead.
//
// A block computes TILE_P x (RUNS * RUN) pixels of one image for all rows of a group. Channel by
// channel the source's patch comes to shared memory, STAGES of them in flight, and the channel's
// filter with it; a thread takes RUN adjacent pixels: it reads the values that they need of a patch
// row once, and uses them for every tap and every row of the output from registers.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "conv/geometry/gather_params.h"
#include "conv/store/epilogue.cuh"
#include "target/async_copy.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = TILE_P * RUNS;
constexpr int TAPS_R = FILTER_R[0], TAPS_S = FILTER_S[0];
constexpr int DISTANCE_H = STEP_H < 0 ? -STEP_H : STEP_H,
              DISTANCE_W = STEP_W < 0 ? -STEP_W : STEP_W;
constexpr int PATCH_H = (TILE_P - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1;
// Rows begin at 16 bytes, and in the source where copies do.
constexpr int PATCH_W = (RUNS - 1) * RUN * STRIDE_W + THREAD_ROW;
constexpr int PATCH = PATCH_H * PATCH_W;
constexpr int FILTER = TAPS_R * TAPS_S * PADDED_ROWS;  // [tap][row]
constexpr int STAGE = PATCH + (FILTER + 3) / 4 * 4;
// A walk backwards meets the taps in reverse: the patch's first column belongs to the last tap.
constexpr bool BACK_H = STEP_H < 0, BACK_W = STEP_W < 0;

struct Origin {
  i64 image;
  int group, p, q;  // of the tile's first pixel
};
device_inline Origin origin_of(u32 block) {
  u32 rest = DIVIDE(DIV_TILES_Q, block);
  Origin origin;
  origin.q = static_cast<int>(block - rest * DIV_TILES_Q) * (RUNS * RUN);
  u32 next = DIVIDE(DIV_TILES_P, rest);
  origin.p = static_cast<int>(rest - next * DIV_TILES_P) * TILE_P;
  const u32 n = DIVIDE(DIV_GROUPS, next);
  origin.group = static_cast<int>(next - n * DIV_GROUPS);
  origin.image = n;
  return origin;
}

struct Loader {
  const element_t* source;  // at the group's first channel, in this image
  const element_t* w;
  int first_h, first_w;  // where the patch begins in the source

  device_inline Loader(const GatherParams& params, const Origin& origin) {
    source = static_cast<const element_t*>(params.source) + origin.image * SOURCE_STRIDE_N +
             static_cast<i64>(origin.group) * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C);
    w = static_cast<const element_t*>(params.w) + W_FIRST[0] +
        static_cast<i64>(origin.group) * W_STRIDE_GROUP;
    first_h = origin.p * STRIDE_H + ORIGIN_H[0] - (BACK_H ? (TAPS_R - 1) * DISTANCE_H : 0);
    first_w = origin.q * STRIDE_W + ORIGIN_W[0] - (BACK_W ? (TAPS_S - 1) * DISTANCE_W : 0) - SHIFT;
  }

  // COUNT elements that lie side by side.
  template <int COUNT>
  device_inline static void move(compute_t* to, const element_t* from, bool valid) {
    if constexpr (ASYNC) {
      async_copy<static_cast<int>(sizeof(element_t)) * COUNT>(to, from, valid);
    } else {
      Pack<element_t, COUNT> pack = {};
      if (valid) pack = *reinterpret_cast<const Pack<element_t, COUNT>*>(from);
      Pack<compute_t, COUNT> values;
#pragma unroll
      for (int i = 0; i < COUNT; ++i) values.element[i] = to_compute(pack.element[i]);
      *reinterpret_cast<Pack<compute_t, COUNT>*>(to) = values;
    }
  }

  device_inline void load(int channel, compute_t* stage) const {
    const element_t* const plane = source + static_cast<i64>(channel) * SOURCE_STRIDE_C;
#pragma unroll 4
    for (int i = thread_x(); i < PATCH / PACK; i += THREADS) {
      constexpr int COPIES = PATCH_W / PACK;
      const int row = i / COPIES, column = (i - row * COPIES) * PACK;
      const int h = first_h + row, v = first_w + column;
      const bool inside = static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                          static_cast<u32>(v) < static_cast<u32>(SOURCE_W);
      move<PACK>(
          stage + i * PACK,
          plane + (static_cast<i64>(h) * SOURCE_STRIDE_H + static_cast<i64>(v) * SOURCE_STRIDE_W),
          inside);
    }
    const element_t* const filter = w + static_cast<i64>(channel) * W_STRIDE_C;
#pragma unroll 1
    for (int i = thread_x(); i < FILTER; i += THREADS) {
      const int tap = i / PADDED_ROWS, row = i - tap * PADDED_ROWS;
      // In the order in which the patch meets them.
      const int r = BACK_H ? TAPS_R - 1 - tap / TAPS_S : tap / TAPS_S;
      const int s = BACK_W ? TAPS_S - 1 - tap % TAPS_S : tap % TAPS_S;
      move<1>(stage + PATCH + i,
              filter + (static_cast<i64>(row) * W_STRIDE_ROW + static_cast<i64>(r) * W_STRIDE_R +
                        static_cast<i64>(s) * W_STRIDE_S),
              row < ROWS);
    }
  }
};

struct alignas(16) Quad {
  compute_t element[16 / sizeof(compute_t)];
};

KILN_KERNEL(depthwise_fma, THREADS, MIN_BLOCKS, GatherParams, params) {
  compute_t* const stages = shared_array<compute_t, STAGES * STAGE>(0);
  const Origin origin = origin_of(block_x());
  const Loader loader(params, origin);
  const int in_p = thread_x() / RUNS, in_q = static_cast<int>(thread_x() % RUNS) * RUN;

  constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;  // of one channel there is but that
#pragma unroll 1
  for (int channel = 0; channel < AHEAD; ++channel) {
    if (channel < CHANNELS) loader.load(channel, stages + channel * STAGE);
    async_commit();
  }
  compute_t sums[ROWS][RUN];
#pragma unroll
  for (int row = 0; row < ROWS; ++row)
#pragma unroll
    for (int i = 0; i < RUN; ++i) sums[row][i] = 0;

  int slot = 0;
#pragma unroll 1
  for (int channel = 0; channel < CHANNELS; ++channel) {
    async_wait<AHEAD - 1>();
    block_barrier();  // this channel has landed for all; the slot read last turn is free for all
    if (channel + AHEAD < CHANNELS)
      loader.load(channel + AHEAD, stages + ((slot == 0 ? STAGES : slot) - 1) * STAGE);
    async_commit();
    const compute_t* const patch =
        stages + slot * STAGE + in_p * STRIDE_H * PATCH_W + in_q * STRIDE_W;
    const compute_t* const filter = stages + slot * STAGE + PATCH;
#pragma unroll 1
    for (int r = 0; r < TAPS_R; ++r) {
      constexpr int QUAD = sizeof(Quad) / sizeof(compute_t);
      constexpr int QUADS = THREAD_ROW / QUAD;
      compute_t values[QUADS * QUAD];
#pragma unroll
      for (int i = 0; i < QUADS; ++i) {
        const Quad quad =
            *reinterpret_cast<const Quad*>(patch + r * DISTANCE_H * PATCH_W + i * QUAD);
#pragma unroll
        for (int j = 0; j < QUAD; ++j) values[i * QUAD + j] = quad.element[j];
      }
#pragma unroll
      for (int s = 0; s < TAPS_S; ++s) {
        compute_t weights[ROWS];
#pragma unroll
        for (int row = 0; row < ROWS; ++row)
          weights[row] = filter[(r * TAPS_S + s) * PADDED_ROWS + row];
#pragma unroll
        for (int row = 0; row < ROWS; ++row)
#pragma unroll
          for (int i = 0; i < RUN; ++i)
            sums[row][i] += weights[row] * values[SHIFT + i * STRIDE_W + s * DISTANCE_W];
      }
    }
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }

  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out);
  epilogue.z = static_cast<const output_t*>(params.z);
  epilogue.bias = static_cast<const output_t*>(params.bias);
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
  const int p = origin.p + in_p, q = origin.q + in_q;
  if (p >= OUT_P[0]) return;
#pragma unroll
  for (int row = 0; row < ROWS; ++row) {
    const i64 channel = static_cast<i64>(origin.group) * ROWS + row;
    const compute_t bias = epilogue.bias_of(static_cast<int>(channel));
    const i64 at = OUT_FIRST[0] + origin.image * OUT_STRIDE_N + channel * OUT_STRIDE_ROW +
                   static_cast<i64>(p) * OUT_STRIDE_P;
    const i64 z_at = Z_FIRST[0] + origin.image * Z_STRIDE_N + channel * Z_STRIDE_ROW +
                     static_cast<i64>(p) * Z_STRIDE_P;
#pragma unroll
    for (int i = 0; i < RUN; i += OUT_VECTOR) {
      if (OUT_VECTOR > 1 && q + i + OUT_VECTOR <= OUT_Q[0]) {
        compute_t some[OUT_VECTOR], biases[OUT_VECTOR];
#pragma unroll
        for (int j = 0; j < OUT_VECTOR; ++j) some[j] = sums[row][i + j], biases[j] = bias;
        epilogue.store_vector(at + q + i, some, biases);
        continue;
      }
#pragma unroll
      for (int j = 0; j < OUT_VECTOR; ++j) {
        if (q + i + j >= OUT_Q[0]) continue;
        const i64 here = at + static_cast<i64>(q + i + j) * OUT_STRIDE_Q;
        epilogue.store_one(here, RESIDUAL ? z_at + static_cast<i64>(q + i + j) * Z_STRIDE_Q : here,
                           sums[row][i + j], bias);
      }
    }
  }
}
