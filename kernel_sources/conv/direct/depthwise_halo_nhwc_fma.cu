// Depthwise forward convolution and data gradient with one phase, in NHWC. While a tile of pixels
// is computed, TMA loads the part of the source that the next tile reads, its halo; elements
// outside the source become zeros.
//
// A thread computes two channels of TILE_P x TILE_Q pixels. It walks down the source rows that
// these read, reads each row once, and adds it to every output row that uses it. A complete output
// row is stored at once, so registers hold only about as many rows of sums as the filter has rows.
// A block has LANES_C pairs of channels, COLUMNS threads along a row and STRIPS down a column. It
// keeps its channels, and so the filter, from tile to tile. Shared memory holds STAGES halos as
// [row][column][channel], and the filter as [tap][channel] in the compute type; with WEIGHTS_KEPT
// the filter is in registers.
#include "common/vector.cuh"
#include "conv/direct/depthwise_filter.cuh"
#include "conv/geometry/boxed_gather_params.h"
#include "conv/store/epilogue.cuh"
#include "target/bulk_copy.cuh"
#include "target/shared_memory.cuh"

constexpr int VECTOR = 2;  // channels that a thread computes
constexpr int THREADS = LANES_C * COLUMNS * STRIPS;
constexpr int BLOCK_CHANNELS = LANES_C * VECTOR;
constexpr int DISTANCE_H = STEP_H < 0 ? -STEP_H : STEP_H,
              DISTANCE_W = STEP_W < 0 ? -STEP_W : STEP_W;
constexpr int TAPS_R = FILTER_R[0], TAPS_S = FILTER_S[0];
// The number of source rows that p output rows read, and of columns that q output columns read.
device_inline constexpr int rows_met(int p) {
  return (p - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1;
}
device_inline constexpr int columns_met(int q) {
  return (q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
}
constexpr int BLOCK_P = STRIPS * TILE_P, BLOCK_Q = COLUMNS * TILE_Q;
constexpr int HALO_H = rows_met(BLOCK_P), HALO_W = columns_met(BLOCK_Q);
constexpr int HALO_ELEMENTS = HALO_H * HALO_W * BLOCK_CHANNELS;
constexpr int HALO_BYTES = HALO_ELEMENTS * static_cast<int>(sizeof(element_t));
constexpr int HALO_PITCH = (HALO_BYTES + 127) / 128 * 128;
constexpr int FILTER_AT = STAGES * HALO_PITCH;
constexpr int FILTER_ELEMENTS = TAPS_R * TAPS_S * BLOCK_CHANNELS;
constexpr int BARRIERS_AT =
    (FILTER_AT + FILTER_ELEMENTS * static_cast<int>(sizeof(compute_t)) + 15) / 16 * 16;
static_assert(BARRIERS_AT + STAGES * 8 <= SHARED_BYTES);
static_assert(CHANNELS == 1 && ROWS == 1 && PHASES == 1);

using Pair = Pack<element_t, VECTOR>;
using Weights = Pack<compute_t, VECTOR>;

// The first pixel of a block's tile.
struct Spot {
  i64 image;
  int p, q;
  device_inline explicit Spot(u32 tile) {
    const u32 row = tile / TILES_Q, up = row / TILES_P;
    image = up;
    p = static_cast<int>(row - up * TILES_P) * BLOCK_P;
    q = static_cast<int>(tile - row * TILES_Q) * BLOCK_Q;
  }
};

// Starts to load the halo of a tile, if there is one.
device_inline void bring(const BoxedGatherParams& params, u32 tile, int channel,
                         unsigned char* halo, Mbarrier& landed) {
  if (tile >= params.common.tiles) return;
  constexpr int LOWER_H = ORIGIN_H[0] - (STEP_H < 0 ? (TAPS_R - 1) * DISTANCE_H : 0);
  constexpr int LOWER_W = ORIGIN_W[0] - (STEP_W < 0 ? (TAPS_S - 1) * DISTANCE_W : 0);
  const Spot spot(tile);
  landed.arrive_and_expect(HALO_BYTES);
  const int at[4] = {channel, spot.q * STRIDE_W + LOWER_W, spot.p * STRIDE_H + LOWER_H,
                     static_cast<int>(spot.image)};
  bulk_load(halo, params.source, landed, at);
}

// The filter of a thread's channels, from registers or from shared memory.
struct Filter {
  Weights kept[WEIGHTS_KEPT ? TAPS_R * TAPS_S : 1];
  const compute_t* shared;  // at the thread's channels

  device_inline explicit Filter(const compute_t* at) : shared(at) {
    if constexpr (WEIGHTS_KEPT) {
#pragma unroll
      for (int tap = 0; tap < TAPS_R * TAPS_S; ++tap) kept[tap] = read(tap);
    }
  }
  device_inline Weights read(int tap) const {
    return *reinterpret_cast<const Weights*>(shared + tap * BLOCK_CHANNELS);
  }
  device_inline Weights of(int tap) const { return WEIGHTS_KEPT ? kept[tap] : read(tap); }
};

// Stores a row of outputs, the first of which is `at`.
device_inline void store_row(const Epilogue& epilogue, i64 at, int q,
                             const compute_t (&sums)[TILE_Q][VECTOR],
                             const compute_t (&bias)[VECTOR]) {
#pragma unroll
  for (int j = 0; j < TILE_Q; ++j)
    if (OUT_Q[0] % TILE_Q == 0 || q + j < OUT_Q[0])
      epilogue.store_vector(at + static_cast<i64>(j) * OUT_STRIDE_Q, sums[j], bias);
}

// Computes and stores a thread's tile. `at` is the offset of its first output, which is pixel (p,
// q).
device_inline void compute(const element_t* halo, const Filter& filter, const Epilogue& epilogue,
                           const compute_t (&bias)[VECTOR], i64 at, int p, int q) {
  constexpr int COLUMNS_MET = columns_met(TILE_Q);
  compute_t sums[TILE_P][TILE_Q][VECTOR] = {};
#pragma unroll
  for (int y = 0; y < rows_met(TILE_P); ++y) {
    compute_t values[COLUMNS_MET][VECTOR];
#pragma unroll
    for (int x = 0; x < COLUMNS_MET; ++x) {
      const Pair pair = *reinterpret_cast<const Pair*>(halo + (y * HALO_W + x) * BLOCK_CHANNELS);
#pragma unroll
      for (int c = 0; c < VECTOR; ++c) values[x][c] = to_compute(pair.element[c]);
    }
#pragma unroll
    for (int i = 0; i < TILE_P; ++i) {
      const int from = y - i * STRIDE_H;
      if (from < 0 || from % DISTANCE_H != 0 || from / DISTANCE_H >= TAPS_R) continue;
      const int r = from / DISTANCE_H;
#pragma unroll
      for (int s = 0; s < TAPS_S; ++s) {
        const Weights weights = filter.of(r * TAPS_S + s);
#pragma unroll
        for (int j = 0; j < TILE_Q; ++j)
#pragma unroll
          for (int c = 0; c < VECTOR; ++c)
            sums[i][j][c] += values[j * STRIDE_W + s * DISTANCE_W][c] * weights.element[c];
      }
      if (r == TAPS_R - 1 && (OUT_P[0] % TILE_P == 0 || p + i < OUT_P[0]))
        store_row(epilogue, at + static_cast<i64>(i) * OUT_STRIDE_P, q, sums[i], bias);
    }
  }
}

KILN_KERNEL(depthwise_halo_nhwc_fma, THREADS, MIN_BLOCKS, BoxedGatherParams, params) {
  unsigned char* const memory = shared_array<unsigned char, FILTER_AT>(0);
  compute_t* const shared_filter = shared_array<compute_t, FILTER_ELEMENTS>(FILTER_AT);
  Mbarrier* const landed = shared_array<Mbarrier, STAGES>(BARRIERS_AT);
  const int first_channel = static_cast<int>(block_x() % CHANNEL_TILES) * BLOCK_CHANNELS;
  const u32 first = block_x() / CHANNEL_TILES, step = grid_x() / CHANNEL_TILES;
  const int lane = static_cast<int>(thread_x() % LANES_C) * VECTOR;
  const int column = static_cast<int>(thread_x() / LANES_C % COLUMNS) * TILE_Q;
  const int row = static_cast<int>(thread_x() / (LANES_C * COLUMNS)) * TILE_P;
  const auto halo_of = [&](u32 turn) { return memory + turn % STAGES * HALO_PITCH; };
  const auto ask = [&](u32 tile, u32 turn) {
    bring(params, tile, first_channel, halo_of(turn), landed[turn % STAGES]);
  };
  if (thread_x() == 0) {
    for (int i = 0; i < STAGES; ++i) landed[i].init(1);
    mbarriers_are_made();
    prefetch_map(params.source);
    for (u32 turn = 0; turn + 1 < STAGES; ++turn) ask(first + turn * step, turn);
  }
  load_filter<0, BLOCK_CHANNELS, THREADS>(params.common, first_channel, shared_filter);
  block_barrier();

  const Filter filter(shared_filter + lane);
  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.common.out) + OUT_FIRST[0];
  epilogue.z = static_cast<const output_t*>(params.common.z) + OUT_FIRST[0];
  epilogue.bias = static_cast<const output_t*>(params.common.bias);
  epilogue.alpha = static_cast<compute_t>(params.common.alpha);
  epilogue.beta = static_cast<compute_t>(params.common.beta);
  epilogue.coef = coefficients_of<compute_t>(params.common);
  const bool has_channels = first_channel + lane < GROUPS;
  compute_t bias[VECTOR] = {};
  if (has_channels) {
#pragma unroll
    for (int c = 0; c < VECTOR; ++c) bias[c] = epilogue.bias_of(first_channel + lane + c);
  }
  u32 turn = 0;
#pragma unroll 1
  for (u32 tile = first; tile < params.common.tiles; tile += step, ++turn) {
    if (turn > 0) block_barrier();  // all threads have read the halo that the next one overwrites
    if (thread_x() == 0) ask(tile + (STAGES - 1) * step, turn + STAGES - 1);
    landed[turn % STAGES].wait(turn / STAGES & 1);
    const Spot spot(tile);
    const int p = spot.p + row, q = spot.q + column;
    if (!has_channels || p >= OUT_P[0] || q >= OUT_Q[0]) continue;
    const element_t* const halo = reinterpret_cast<const element_t*>(halo_of(turn)) +
                                  (row * STRIDE_H * HALO_W + column * STRIDE_W) * BLOCK_CHANNELS +
                                  lane;
    const i64 at = spot.image * OUT_STRIDE_N + first_channel + lane +
                   static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q;
    compute(halo, filter, epilogue, bias, at, p, q);
  }
}
