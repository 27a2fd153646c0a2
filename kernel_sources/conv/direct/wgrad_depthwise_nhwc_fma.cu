// Filter gradient of channels-last tensors with few channels per group.
//
// A thread has VECTOR channels of dy (16 bytes; fewer for long depthwise filters), the INPUTS
// channels of x in their groups, and FILTER_ROWS rows of the filter, whose sums it keeps in
// registers. RUNS threads take turns at units of TILE_P rows of TILE_Q pixels of dy. At the end a
// block adds up its threads' sums in the order of their numbers, then a cluster its blocks' in the
// order of their ranks. Groups of blocks (PARTIAL) leave their sums in the workspace for a second
// step.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/store/depthwise_wgrad_sum.cuh"

constexpr int THREADS = LANES_C * RUNS;
constexpr int COLUMNS_MET = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
constexpr u32 OWN_OFFSET = THREADS * VECTOR * sizeof(compute_t);  // after the exchange
static_assert(OWN_OFFSET + TILE_ELEMENTS * sizeof(compute_t) <= SHARED_BYTES);

static_assert(BLOCK_ROWS == LANES_C * VECTOR);

// Channels of x that a thread has, read ACCESS at a time.
constexpr int INPUTS = (ROWS < VECTOR ? VECTOR / ROWS : 1) * CHANNELS;
static_assert(VECTOR % ROWS == 0 || ROWS % VECTOR == 0);
static_assert(INPUTS % ACCESS == 0);

using Vector = Pack<element_t, VECTOR>;
using Access = Pack<element_t, ACCESS>;
struct Inputs {
  Access part[INPUTS / ACCESS];
};
using Sums = compute_t[FILTER_ROWS][TAPS_S * CHANNELS][VECTOR];

// Reads what a unit meets of a row of x, from column w0 on.
device_inline void read_row(const element_t* line, int w0, Inputs (&values)[COLUMNS_MET]) {
#pragma unroll
  for (int v = 0; v < COLUMNS_MET; ++v)
    if (static_cast<u32>(w0 + v) < static_cast<u32>(SOURCE_W)) {
      const element_t* const place = line + static_cast<i64>(v) * SOURCE_STRIDE_W;
#pragma unroll
      for (int part = 0; part < INPUTS / ACCESS; ++part)
        values[v].part[part] = *reinterpret_cast<const Access*>(place + part * ACCESS);
    }
}

// Adds the products of a row of dy, whose first pixel is q, with a row of x.
device_inline void add_row(compute_t (&sums)[TAPS_S * CHANNELS][VECTOR],
                           const Vector (&gradient)[TILE_Q], const Inputs (&values)[COLUMNS_MET],
                           int q) {
#pragma unroll
  for (int j = 0; j < TILE_Q; ++j) {
    // Elements of x past the row's end may be infinite, and must not be multiplied.
    if (OUT_Q % TILE_Q != 0 && q + j >= OUT_Q) continue;
#pragma unroll
    for (int tap = 0; tap < TAPS_S * CHANNELS; ++tap) {
      const int s = tap / CHANNELS, in = tap % CHANNELS;
      const int at = j * STRIDE_W + (STEP_W < 0 ? TAPS_S - 1 - s : s) * DISTANCE_W;
#pragma unroll
      for (int c = 0; c < VECTOR; ++c) {
        const int input = (ROWS < VECTOR ? c / ROWS * CHANNELS : 0) + in;
        sums[tap][c] += to_compute(gradient[j].element[c]) *
                        to_compute(values[at].part[input / ACCESS].element[input % ACCESS]);
      }
    }
  }
}

// Adds the products of a unit. Rows of the filter are taken in the order of the rows of x that they
// meet, and each row of x is read once for all rows of dy.
device_inline void add_unit(const DepthwiseWgradParams& params, u64 unit, int out, int first_row,
                            Sums& sums) {
  const u64 row = DIVIDE(DIV_TILES_Q, unit);
  const u64 image = DIVIDE(DIV_TILES_P, row);
  const int q = static_cast<int>(unit - row * DIV_TILES_Q) * TILE_Q;
  const int p = static_cast<int>(row - image * DIV_TILES_P) * TILE_P;
  const element_t* const dy =
      static_cast<const element_t*>(params.dy) + static_cast<i64>(image) * OUT_STRIDE_N + out +
      static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q;
  Vector gradient[TILE_P][TILE_Q] = {};
#pragma unroll
  for (int i = 0; i < TILE_P; ++i)
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j)
      if (p + i < OUT_P && q + j < OUT_Q)
        gradient[i][j] = *reinterpret_cast<const Vector*>(
            dy + (static_cast<i64>(i) * OUT_STRIDE_P + static_cast<i64>(j) * OUT_STRIDE_Q));
  const int w0 = q * STRIDE_W + LOWER_W;
  const int h0 = p * STRIDE_H + LOWER_H +
                 (STEP_H < 0 ? TAPS_R - first_row - FILTER_ROWS : first_row) * DISTANCE_H;
  const element_t* const x = static_cast<const element_t*>(params.x) +
                             static_cast<i64>(image) * SOURCE_STRIDE_N + first_channel(out) +
                             static_cast<i64>(w0) * SOURCE_STRIDE_W;
#pragma unroll
  for (int y = 0; y < (TILE_P - 1) * STRIDE_H + (FILTER_ROWS - 1) * DISTANCE_H + 1; ++y) {
    bool met = false;
#pragma unroll
    for (int i = 0; i < TILE_P; ++i) {
      const int from = y - i * STRIDE_H;
      met |= from >= 0 && from % DISTANCE_H == 0 && from / DISTANCE_H < FILTER_ROWS;
    }
    if (!met || static_cast<u32>(h0 + y) >= static_cast<u32>(SOURCE_H)) continue;
    Inputs values[COLUMNS_MET] = {};
    read_row(x + static_cast<i64>(h0 + y) * SOURCE_STRIDE_H, w0, values);
#pragma unroll
    for (int i = 0; i < TILE_P; ++i) {
      const int from = y - i * STRIDE_H, k = from / DISTANCE_H;
      if (from < 0 || from % DISTANCE_H != 0 || k >= FILTER_ROWS) continue;
      const int r = STEP_H < 0 ? FILTER_ROWS - 1 - k : k;
      // The last rows of dy and of the filter may not exist.
      if ((OUT_P % TILE_P != 0 && p + i >= OUT_P) || first_row + r >= TAPS_R) continue;
      add_row(sums[r], gradient[i], values, q);
    }
  }
}

// Adds up the block's sums in the order of its threads, as [tap][channel of x][channel of dy].
device_inline void add_up_block(const Sums& sums, compute_t* exchange, compute_t* own) {
  const int lane = thread_x() % LANES_C, run = thread_x() / LANES_C;
#pragma unroll
  for (int tap = 0; tap < TILE_TAPS * CHANNELS; ++tap) {
    if (tap > 0) block_barrier();  // all threads have read the last exchange
#pragma unroll
    for (int c = 0; c < VECTOR; ++c)
      exchange[(run * LANES_C + lane) * VECTOR + c] =
          sums[tap / (TAPS_S * CHANNELS)][tap % (TAPS_S * CHANNELS)][c];
    block_barrier();
#pragma unroll 1
    for (int channel = thread_x(); channel < BLOCK_ROWS; channel += THREADS) {
      compute_t total = 0;
#pragma unroll 8
      for (int other = 0; other < RUNS; ++other) total += exchange[other * BLOCK_ROWS + channel];
      own[tap * BLOCK_ROWS + channel] = total;
    }
  }
}

KILN_KERNEL(wgrad_depthwise_nhwc_fma, THREADS, MIN_BLOCKS, DepthwiseWgradParams, params) {
  compute_t* const exchange = shared_array<compute_t, THREADS * VECTOR>(0);
  compute_t* const own = shared_array<compute_t, TILE_ELEMENTS>(OWN_OFFSET);
  const TileShare share = share_of(params);
  const DepthwiseTile tile(share.tile);

  Sums sums;
#pragma unroll
  for (int i = 0; i < FILTER_ROWS; ++i)
#pragma unroll
    for (int s = 0; s < TAPS_S * CHANNELS; ++s)
#pragma unroll
      for (int c = 0; c < VECTOR; ++c) sums[i][s][c] = 0;
  const int out = tile.out + static_cast<int>(thread_x() % LANES_C) * VECTOR;
  if (out < GROUPS * ROWS) {
#pragma unroll 1
    for (u64 unit = share.first + thread_x() / LANES_C; unit < share.end; unit += RUNS)
      add_unit(params, unit, out, tile.row, sums);
  }
  add_up_block(sums, exchange, own);
  finish_tile<THREADS>(params, share, tile, own);
}
