// Filter gradient in NHWC with one channel of x per group: any number of channels, at any
// alignment, in one to three dimensions.
//
// A thread has VECTOR channels of dy, two or one, and FILTER_ROWS rows of a plane of the filter,
// whose sums it keeps in registers. RUNS threads take turns at units of TILE_P x TILE_Q pixels of
// dy. Of a unit a thread walks down the rows of x: it reads each once, while it multiplies the one
// before with every row of dy that meets it. At the end a block adds up its threads' sums in the
// order of their numbers, a row of the filter at a time, then a cluster its blocks' in the order of
// their ranks. Groups of blocks (PARTIAL) leave their sums in the workspace for a second step.
#include "common/magic.cuh"
#include "conv/direct/narrow_pixels.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/store/depthwise_wgrad_sum.cuh"

constexpr int THREADS = LANES_C * RUNS;  // LANES_C vectors of channels, RUNS threads for each
// The rows and columns of x that a unit meets.
constexpr int ROWS_MET = (TILE_P - 1) * STRIDE_H + (FILTER_ROWS - 1) * DISTANCE_H + 1;
constexpr int COLUMNS_MET = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
static_assert(OWN_OFFSET >= THREADS * TAPS_S * VECTOR * sizeof(compute_t));
static_assert(OWN_OFFSET + TILE_ELEMENTS * sizeof(compute_t) <= SHARED_BYTES);
static_assert(BLOCK_ROWS == LANES_C * VECTOR);

// Channels of x that a thread reads: those of its groups.
constexpr int INPUTS = ROWS == 1 ? VECTOR : 1;
static_assert(CHANNELS == 1 && (ROWS == 1 || ROWS % VECTOR == 0));

using Sums = compute_t[FILTER_ROWS][TAPS_S][VECTOR];
using Gradient = compute_t[TILE_Q][VECTOR];

// Adds the products of a row of dy, whose first pixel is q, with a row of x.
device_inline void add_row(compute_t (&sums)[TAPS_S][VECTOR], const Gradient& gradient,
                           const compute_t (&x)[COLUMNS_MET][INPUTS], int q) {
#pragma unroll
  for (int j = 0; j < TILE_Q; ++j) {
    // Elements of x past the row's end may be infinite, and must not be multiplied.
    if (OUT_Q % TILE_Q != 0 && q + j >= OUT_Q) continue;
#pragma unroll
    for (int s = 0; s < TAPS_S; ++s)
#pragma unroll
      for (int c = 0; c < VECTOR; ++c)
        sums[s][c] +=
            gradient[j][c] *
            x[j * STRIDE_W + (STEP_W < 0 ? TAPS_S - 1 - s : s) * DISTANCE_W][INPUTS == 1 ? 0 : c];
  }
}

// Adds the products of a unit. Rows of the filter are taken in the order of the rows of x that they
// meet.
device_inline void add_unit(const DepthwiseWgradParams& params, u64 unit, int out,
                            const DepthwiseTile& tile, Sums& sums) {
  const u64 row = DIVIDE(DIV_TILES_Q, unit);
  const u64 plane = DIVIDE(DIV_TILES_P, row);
  const u64 image = DIVIDE(DIV_PLANES, plane);
  const int q = static_cast<int>(unit - row * DIV_TILES_Q) * TILE_Q;
  const int p = static_cast<int>(row - plane * DIV_TILES_P) * TILE_P;
  const int o = static_cast<int>(plane - image * DIV_PLANES);
  const int d = o * STRIDE_D + ORIGIN_D + tile.plane * STEP_D;
  if (PADDED_D && static_cast<u32>(d) >= static_cast<u32>(SOURCE_D)) return;
  const int w0 = q * STRIDE_W + LOWER_W;
  const int h0 = p * STRIDE_H + LOWER_H +
                 (STEP_H < 0 ? TAPS_R - tile.row - FILTER_ROWS : tile.row) * DISTANCE_H;
  const element_t* const dy =
      static_cast<const element_t*>(params.dy) + static_cast<i64>(image) * OUT_STRIDE_N + out +
      static_cast<i64>(o) * OUT_STRIDE_O + static_cast<i64>(p) * OUT_STRIDE_P +
      static_cast<i64>(q) * OUT_STRIDE_Q;
  const element_t* const x =
      static_cast<const element_t*>(params.x) + static_cast<i64>(image) * SOURCE_STRIDE_N +
      out / ROWS + static_cast<i64>(d) * SOURCE_STRIDE_D + static_cast<i64>(h0) * SOURCE_STRIDE_H +
      static_cast<i64>(w0) * SOURCE_STRIDE_W;
  const auto read_x = [&](int y, NarrowPixel<element_t, INPUTS>(&to)[COLUMNS_MET]) {
    read_row<SOURCE_W, SOURCE_STRIDE_W>(x + static_cast<i64>(y) * SOURCE_STRIDE_H,
                                        static_cast<u32>(h0 + y) < static_cast<u32>(SOURCE_H), w0,
                                        to);
  };
  const auto read_dy = [&](int i, NarrowPixel<element_t, VECTOR>(&to)[TILE_Q]) {
    read_row<OUT_Q, OUT_STRIDE_Q>(dy + static_cast<i64>(i) * OUT_STRIDE_P,
                                  OUT_P % TILE_P == 0 || p + i < OUT_P, q, to);
  };
  NarrowPixel<element_t, INPUTS> x_rows[2][COLUMNS_MET];
  NarrowPixel<element_t, VECTOR> dy_rows[TILE_P][TILE_Q];
  Gradient gradient[TILE_P];
  read_x(0, x_rows[0]);
  read_dy(0, dy_rows[0]);
#pragma unroll
  for (int y = 0; y < ROWS_MET; ++y) {
    if (y + 1 < ROWS_MET) read_x(y + 1, x_rows[(y + 1) % 2]);
    if ((y + 1) % STRIDE_H == 0 && (y + 1) / STRIDE_H < TILE_P)
      read_dy((y + 1) / STRIDE_H, dy_rows[(y + 1) / STRIDE_H]);
    compute_t values[COLUMNS_MET][INPUTS];
#pragma unroll
    for (int v = 0; v < COLUMNS_MET; ++v)
#pragma unroll
      for (int c = 0; c < INPUTS; ++c) values[v][c] = x_rows[y % 2][v].of(c);
#pragma unroll
    for (int i = 0; i < TILE_P; ++i) {
      const int from = y - i * STRIDE_H, k = from / DISTANCE_H;
      if (from == 0) {
#pragma unroll
        for (int j = 0; j < TILE_Q; ++j)
#pragma unroll
          for (int c = 0; c < VECTOR; ++c) gradient[i][j][c] = dy_rows[i][j].of(c);
      }
      if (from < 0 || from % DISTANCE_H != 0 || k >= FILTER_ROWS) continue;
      if (OUT_P % TILE_P != 0 && p + i >= OUT_P) continue;  // as past a row's end
      add_row(sums[STEP_H < 0 ? FILTER_ROWS - 1 - k : k], gradient[i], values, q);
    }
  }
}

// Adds up the block's sums in the order of its threads, as [tap][channel of dy].
device_inline void add_up_block(const Sums& sums, compute_t* exchange, compute_t* own) {
  constexpr int ROW = TAPS_S * BLOCK_ROWS;  // elements of a row of the filter
  const int lane = thread_x() % LANES_C, run = thread_x() / LANES_C;
#pragma unroll
  for (int r = 0; r < FILTER_ROWS; ++r) {
    if (r > 0) block_barrier();  // all threads have read the last exchange
#pragma unroll
    for (int s = 0; s < TAPS_S; ++s)
#pragma unroll
      for (int c = 0; c < VECTOR; ++c)
        exchange[run * ROW + s * BLOCK_ROWS + lane * VECTOR + c] = sums[r][s][c];
    block_barrier();
#pragma unroll 1
    for (int element = thread_x(); element < ROW; element += THREADS) {
      compute_t total = 0;
#pragma unroll 8
      for (int other = 0; other < RUNS; ++other) total += exchange[other * ROW + element];
      own[r * ROW + element] = total;
    }
  }
}

KILN_KERNEL(wgrad_depthwise_rows_nhwc_fma, THREADS, MIN_BLOCKS, DepthwiseWgradParams, params) {
  compute_t* const exchange = shared_array<compute_t, THREADS * TAPS_S * VECTOR>(0);
  compute_t* const own = shared_array<compute_t, TILE_ELEMENTS>(OWN_OFFSET);
  const TileShare share = share_of(params);
  const DepthwiseTile tile(share.tile);
  Sums sums = {};
  const int out = tile.out + static_cast<int>(thread_x() % LANES_C) * VECTOR;
  if (out < GROUPS * ROWS) {
#pragma unroll 1
    for (u64 unit = share.first + thread_x() / LANES_C; unit < share.end; unit += RUNS)
      add_unit(params, unit, out, tile, sums);
  }
  add_up_block(sums, exchange, own);
  finish_tile<THREADS>(params, share, tile, own);
}
