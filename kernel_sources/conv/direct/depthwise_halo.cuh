// Tiles of depthwise forward convolutions and data gradients with one phase, in NHWC. While a tile
// of pixels is computed, TMA loads the part of the source that the next tile reads, its halo;
// elements outside the source become zeros.
//
// A thread computes two channels of TILE_P x TILE_Q pixels. It walks down the source rows that
// these read, reads each row once, and adds it to every output row that uses it. A complete output
// row is stored at once, so registers hold only about as many rows of sums as the filter has rows.
// A block has LANES_C pairs of channels, COLUMNS threads along a row and STRIPS down a column. It
// keeps its channels, and so the filter, from tile to tile. Shared memory holds STAGES halos as
// [row][column][channel], and the filter as [tap][channel] in the compute type; with WEIGHTS_KEPT
// the filter is in registers.
#pragma once

#include "common/vector.cuh"
#include "conv/direct/depthwise_filter.cuh"
#include "conv/load/halo_boxes.cuh"
#include "conv/store/boxed_epilogue.cuh"
#include "target/shared_memory.cuh"

constexpr int VECTOR = 2;  // channels that a thread computes
constexpr int THREADS = LANES_C * COLUMNS * STRIPS;
constexpr int BLOCK_CHANNELS = LANES_C * VECTOR;
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
static_assert(CHANNELS == 1 && ROWS == 1);

using Halos = HaloRing<BLOCK_P, BLOCK_Q, HALO_BYTES, HALO_PITCH>;
using Pair = Pack<element_t, VECTOR>;
using Weights = Pack<compute_t, VECTOR>;

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

using Outputs = Pack<output_t, VECTOR>;

// What a pixel's sums become before they are stored. `at`: of the output and of z.
device_inline Outputs finished(const Epilogue& epilogue, i64 at, const compute_t (&sums)[VECTOR],
                               const compute_t (&bias)[VECTOR]) {
  Outputs value;
  compute_t z[VECTOR] = {};
  if (epilogue.beta != compute_t(0)) {
    value = *reinterpret_cast<const Outputs*>(epilogue.residual() + at);
#pragma unroll
    for (int c = 0; c < VECTOR; ++c) z[c] = to_compute(value.element[c]);
  }
#pragma unroll
  for (int c = 0; c < VECTOR; ++c) value.element[c] = epilogue.finish(sums[c], bias[c], z[c]);
  return value;
}
device_inline void store(const Epilogue& epilogue, i64 at, const Outputs& value) {
  *reinterpret_cast<Outputs*>(epilogue.out + at) = value;
}

// Whether a column is one of the output's.
device_inline bool is_column(int q) { return OUT_Q[0] % TILE_Q == 0 || q < OUT_Q[0]; }

// What becomes of a thread's results: they are stored.
class Stores {
 public:
  struct Params {
    BoxedGatherParams boxed;
  };
  struct Row {};  // what is read of a row before its sums are complete

  device_inline Stores(const Params& params, int channel, bool present)
      : epilogue_(boxed_epilogue(params.boxed)) {
    if (!present) return;
#pragma unroll
    for (int c = 0; c < VECTOR; ++c) bias_[c] = epilogue_.bias_of(channel + c);
  }
  device_inline Row begin_row(i64, int) const { return {}; }
  // The row of outputs the first of which is `at`, in column q.
  device_inline void end_row(const Row&, i64 at, int q,
                             const compute_t (&sums)[TILE_Q][VECTOR]) const {
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j)
      if (is_column(q + j))
        epilogue_.store_vector(at + static_cast<i64>(j) * OUT_STRIDE_Q, sums[j], bias_);
  }
  // All tiles of the block are done, and shared memory is free. present: the thread has channels.
  device_inline void leave(unsigned char*, bool) const {}

 private:
  Epilogue epilogue_;
  compute_t bias_[VECTOR] = {};
};

// Computes and stores a thread's tile. `at` is the offset of its first output, which is pixel (p,
// q).
template <class Results>
device_inline void compute(const element_t* halo, const Filter& filter, Results& results, i64 at,
                           int p, int q) {
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
      const bool ends = r == TAPS_R - 1 && (OUT_P[0] % TILE_P == 0 || p + i < OUT_P[0]);
      const i64 row_at = at + static_cast<i64>(i) * OUT_STRIDE_P;
      typename Results::Row row;
      if (ends) row = results.begin_row(row_at, q);
#pragma unroll
      for (int s = 0; s < TAPS_S; ++s) {
        const Weights weights = filter.of(r * TAPS_S + s);
#pragma unroll
        for (int j = 0; j < TILE_Q; ++j)
#pragma unroll
          for (int c = 0; c < VECTOR; ++c)
            sums[i][j][c] += values[j * STRIDE_W + s * DISTANCE_W][c] * weights.element[c];
      }
      if (ends) results.end_row(row, row_at, q, sums[i]);
    }
  }
}

// All tiles of a block. Results: as Stores.
template <class Results>
device_inline void compute_tiles(const typename Results::Params& all) {
  const BoxedGatherParams& params = all.boxed;
  unsigned char* const memory = shared_array<unsigned char, FILTER_AT>(0);
  compute_t* const shared_filter = shared_array<compute_t, FILTER_ELEMENTS>(FILTER_AT);
  Mbarrier* const landed = shared_array<Mbarrier, STAGES>(BARRIERS_AT);
  const int first_channel = static_cast<int>(block_x() % CHANNEL_TILES) * BLOCK_CHANNELS;
  const u32 first = block_x() / CHANNEL_TILES, step = grid_x() / CHANNEL_TILES;
  const int lane = static_cast<int>(thread_x() % LANES_C) * VECTOR;
  const int column = static_cast<int>(thread_x() / LANES_C % COLUMNS) * TILE_Q;
  const int row = static_cast<int>(thread_x() / (LANES_C * COLUMNS)) * TILE_P;
  const Halos halos{params, memory, landed, first_channel};
  if (thread_x() == 0) halos.begin(first, step);
  load_filter<0, BLOCK_CHANNELS, THREADS>(params.common, first_channel, shared_filter);
  block_barrier();

  const Filter filter(shared_filter + lane);
  const bool has_channels = first_channel + lane < GROUPS;
  Results results(all, first_channel + lane, has_channels);
  u32 turn = 0;
#pragma unroll 1
  for (u32 tile = first; tile < params.common.tiles; tile += step, ++turn) {
    const unsigned char* const taken = halos.take(tile, step, turn);
    const BoxedSpot<BLOCK_P, BLOCK_Q> spot(tile);
    const int p = spot.p + row, q = spot.q + column;
    if (!has_channels || p >= OUT_P[0] || q >= OUT_Q[0]) continue;
    const element_t* const halo = reinterpret_cast<const element_t*>(taken) +
                                  (row * STRIDE_H * HALO_W + column * STRIDE_W) * BLOCK_CHANNELS +
                                  lane;
    const i64 at = spot.image * OUT_STRIDE_N + first_channel + lane +
                   static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q;
    compute(halo, filter, results, at, p, q);
  }
  results.leave(memory, has_channels);
}
