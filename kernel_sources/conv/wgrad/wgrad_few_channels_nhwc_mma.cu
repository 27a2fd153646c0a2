// Filter gradient of channels-last tensors of 16 bits, of which x or dy has few channels, on the
// tensor cores.
//
// A block takes tiles of TILE_P x TILE_Q pixels of dy in turn. What they meet of both tensors comes
// to shared memory while tiles before are multiplied: of the one with many channels BLOCK_MANY of
// each place, of the other one rows of places as they lie. Rows of a product are 16 of the many
// channels, and its sum is over 16 pixels of a row. Of few channels of x the columns are taps and
// channels, each read at its own place; of few channels of dy they are these, and each tap has
// products of its own. So every sum is of one element of dw, and infinities and NaN stay there.
//
// A block's warps, then a cluster's blocks add up in the order of their numbers; groups of blocks
// (PARTIAL) leave theirs in the workspace, for a second step.
#include "common/magic.cuh"
#include "conv/direct/depthwise_wgrad_sum.cuh"
#include "conv/load/whole_rows.cuh"
#include "target/async_copy.cuh"
#include "target/warp_product.cuh"

constexpr int THREADS = 32 * WARPS_M * WARPS_N * SLICES;
constexpr int DISTANCE_H = STEP_H < 0 ? -STEP_H : STEP_H,
              DISTANCE_W = STEP_W < 0 ? -STEP_W : STEP_W;
constexpr int X_HEIGHT = (TILE_P - 1) * STRIDE_H + (FILTER_ROWS - 1) * DISTANCE_H + 1,
              X_WIDTH = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
// Places of the tensor of many channels, [place][channel].
constexpr int MANY_ROWS = FEW_OF_X ? TILE_P : X_HEIGHT, MANY_COLUMNS = FEW_OF_X ? TILE_Q : X_WIDTH;
constexpr int OCTETS = BLOCK_MANY / 8, MANY_PITCH = BLOCK_MANY * 2 + 16;
// Rows of the other one, from the copy on in which a row's first element lies.
constexpr int FEW = FEW_OF_X ? CHANNELS : BLOCK_ROWS;
constexpr int FEW_ROWS = FEW_OF_X ? X_HEIGHT : TILE_P;
constexpr int SHIFT = FEW_OF_X ? elements_before<COPY_BYTES>(LOWER_W, FEW) : 0;
constexpr int FEW_COPIES = row_copies<COPY_BYTES>(SHIFT, (FEW_OF_X ? X_WIDTH : TILE_Q) * FEW);
constexpr int FEW_OFFSET = MANY_ROWS * MANY_COLUMNS * MANY_PITCH;
constexpr int STAGE_BYTES = FEW_OFFSET + FEW_ROWS * FEW_PITCH;
constexpr int ZERO_OFFSET = STAGES * STAGE_BYTES;  // 16 bytes: what pixels read that do not exist
static_assert(STAGE_BYTES % 16 == 0);
static_assert(ZERO_OFFSET + 16 <= SHARED_BYTES);
static_assert(SLICES * TILE_ELEMENTS * sizeof(float) <= SHARED_BYTES);
static_assert(TILE_Q % 16 == 0 && BLOCK_MANY == 16 * PRODUCTS_M * WARPS_M);
// Columns of products, or with FEW_OF_DY taps.
constexpr int COLUMNS = TILE_TAPS * FEW;
static_assert(FEW_OF_X ? 8 * WARPS_N * PRODUCTS_N >= COLUMNS
                       : WARPS_N * PRODUCTS_N >= TILE_TAPS && FEW <= 8);

struct Spot {
  i64 image;
  int o, p, q;  // the tile's first pixel of dy
};

device_inline Spot spot_of(u64 unit) {
  const u64 row = DIVIDE(DIV_TILES_Q, unit);
  const u64 plane = DIVIDE(DIV_TILES_P, row);
  const u64 image = DIVIDE(DIV_OUT_O, plane);
  Spot spot;
  spot.image = static_cast<i64>(image);
  spot.o = static_cast<int>(plane - image * DIV_OUT_O);
  spot.q = static_cast<int>(unit - row * DIV_TILES_Q) * TILE_Q;
  spot.p = static_cast<int>(row - plane * DIV_TILES_P) * TILE_P;
  return spot;
}

// Of a tile, where a row of the filter's or the filter's own distance lies from its lowest one.
device_inline constexpr int tap_row(int r) {
  return (STEP_H < 0 ? FILTER_ROWS - 1 - r : r) * DISTANCE_H;
}
device_inline constexpr int tap_column(int s) {
  return (STEP_W < 0 ? TAPS_S - 1 - s : s) * DISTANCE_W;
}

// Starts to copy what a tile meets; what lies outside is zero.
device_inline void load_stage(const DepthwiseWgradParams& params, u64 unit,
                              const DepthwiseTile& tile, unsigned char* stage) {
  const Spot spot = spot_of(unit);
  const int lowest = STEP_H < 0 ? TAPS_R - tile.row - FILTER_ROWS : tile.row;
  const int d = spot.o * STRIDE_D + ORIGIN_D + tile.plane * STEP_D;
  const int h = spot.p * STRIDE_H + LOWER_H + lowest * DISTANCE_H, w = spot.q * STRIDE_W + LOWER_W;
  const bool in_depth = static_cast<u32>(d) < static_cast<u32>(SOURCE_D);
  const element_t* const x = static_cast<const element_t*>(params.x) +
                             spot.image * SOURCE_STRIDE_N + static_cast<i64>(d) * SOURCE_STRIDE_D;
  const element_t* const dy = static_cast<const element_t*>(params.dy) + spot.image * OUT_STRIDE_N +
                              static_cast<i64>(spot.o) * OUT_STRIDE_O;
#pragma unroll 1
  for (int i = thread_x(); i < MANY_ROWS * MANY_COLUMNS * OCTETS; i += THREADS) {
    const int place = i / OCTETS, octet = i % OCTETS;
    const int row = place / MANY_COLUMNS, column = place - row * MANY_COLUMNS;
    unsigned char* const to = stage + place * MANY_PITCH + octet * 16;
    if constexpr (FEW_OF_X) {
      const int p = spot.p + row, q = spot.q + column, channel = tile.out + octet * 8;
      async_copy<16>(
          to,
          dy + (static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q + channel),
          p < OUT_P && q < OUT_Q && channel < ROWS);
    } else {
      const int channel = tile.in + octet * 8;
      const bool inside = in_depth && static_cast<u32>(h + row) < static_cast<u32>(SOURCE_H) &&
                          static_cast<u32>(w + column) < static_cast<u32>(SOURCE_W);
      async_copy<16>(to,
                     x + (static_cast<i64>(h + row) * SOURCE_STRIDE_H +
                          static_cast<i64>(w + column) * SOURCE_STRIDE_W + channel),
                     inside && channel < GROUP_CHANNELS);
    }
  }
  constexpr int LENGTH = (FEW_OF_X ? SOURCE_W : OUT_Q) * FEW;
  copy_whole_rows<THREADS, FEW_ROWS, FEW_COPIES, FEW_PITCH, COPY_BYTES, LENGTH>(
      stage + FEW_OFFSET, FEW_OF_X ? x : dy, FEW_OF_X ? SOURCE_STRIDE_H : OUT_STRIDE_P,
      FEW_OF_X ? h : spot.p, FEW_OF_X ? SOURCE_H : OUT_P, (FEW_OF_X ? w : spot.q) * FEW - SHIFT,
      !FEW_OF_X || in_depth);
}

// The right operand of 16 pixels, of which a lane has four: elements APART bytes apart.
template <int APART>
device_inline void load_right(u32 (&right)[2], const unsigned char* at) {
  right[0] = pack_shorts(short_at(at), short_at(at + APART));
  right[1] = pack_shorts(short_at(at + 8 * APART), short_at(at + 9 * APART));
}

using Sums = float[PRODUCTS_M][PRODUCTS_N][4];

struct Lane {
  int m, n, slice;         // warps
  int pixel, octet, few;   // what a lane addresses of matrices; its first pixel of a column
  int offset[PRODUCTS_N];  // of the warp's columns, or of its taps

  device_inline Lane() {
    const int lane = static_cast<int>(thread_x() % 32), warp = static_cast<int>(thread_x() / 32);
    m = warp % WARPS_M, n = warp / WARPS_M % WARPS_N, slice = warp / (WARPS_M * WARPS_N);
    // Rows of four matrices: 8 pixels of 8 channels, of the next 8 channels, and 8 pixels on.
    pixel = lane / 16 * 8 + lane % 8, octet = m * PRODUCTS_M * 2 + lane / 8 % 2;
    few = 2 * (lane % 4);
#pragma unroll
    for (int j = 0; j < PRODUCTS_N; ++j) {
      const int column = FEW_OF_X ? (n * PRODUCTS_N + j) * 8 + lane / 4 : n * PRODUCTS_N + j;
      const int exists = column < (FEW_OF_X ? COLUMNS : TILE_TAPS) ? column : 0;
      const int tap = FEW_OF_X ? exists / FEW : exists;
      const int r = tap_row(tap / TAPS_S), s = tap_column(tap % TAPS_S);
      offset[j] = FEW_OF_X ? r * FEW_PITCH + (SHIFT + s * FEW + exists % FEW) * 2
                           : (r * X_WIDTH + s) * MANY_PITCH;
    }
  }
};

// Adds the products of the warp's pixels of a tile.
device_inline void add_tile(Sums& sums, const Lane& lane, u64 unit, const unsigned char* stage,
                            const unsigned char* zero) {
  constexpr int GROUPS_Q = TILE_Q / 16;
  constexpr bool WHOLE = OUT_Q % TILE_Q == 0;
  const Spot spot = spot_of(unit);
  const unsigned char* const few = stage + FEW_OFFSET;
#pragma unroll 1
  for (int step = lane.slice; step < TILE_P * GROUPS_Q; step += SLICES) {
    const int row = step / GROUPS_Q, first = step % GROUPS_Q * 16;
    if (spot.p + row >= OUT_P) break;
    const int left_q = OUT_Q - spot.q - first;  // pixels
    if (!WHOLE && left_q <= 0) continue;
    if constexpr (FEW_OF_X) {
      u32 left[PRODUCTS_M][4];
      const unsigned char* const many =
          stage + (row * TILE_Q + first + lane.pixel) * MANY_PITCH + lane.octet * 16;
#pragma unroll
      for (int m = 0; m < PRODUCTS_M; ++m) load_matrices_transposed(left[m], many + m * 32);
      // Beside dy's end lies what of x may be infinite, and is no product.
      u32 mask[2] = {0xffffffffu, 0xffffffffu};
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (!WHOLE)
          mask[i] = (lane.few + 8 * i < left_q ? 0xffffu : 0) |
                    (lane.few + 8 * i + 1 < left_q ? 0xffff0000u : 0);
      constexpr int APART = STRIDE_W * FEW * 2;
      const unsigned char* const from =
          few + row * STRIDE_H * FEW_PITCH + (first + lane.few) * APART;
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j) {
        u32 right[2];
        load_right<APART>(right, from + lane.offset[j]);
        if (!WHOLE) right[0] &= mask[0], right[1] &= mask[1];
#pragma unroll
        for (int m = 0; m < PRODUCTS_M; ++m) add_product<element_t>(sums[m][j], left[m], right);
      }
    } else {
      u32 right[2];
      const int column = static_cast<int>(thread_x() % 32 / 4);
      load_right<FEW * 2>(right, few + row * FEW_PITCH +
                                     ((first + lane.few) * FEW + (column < FEW ? column : 0)) * 2);
      const bool exists = WHOLE || lane.pixel < left_q;
      const unsigned char* const many =
          stage + (row * STRIDE_H * X_WIDTH + (first + lane.pixel) * STRIDE_W) * MANY_PITCH +
          lane.octet * 16;
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j)
#pragma unroll
        for (int m = 0; m < PRODUCTS_M; ++m) {
          u32 left[4];
          load_matrices_transposed(left, exists ? many + lane.offset[j] + m * 32 : zero);
          add_product<element_t>(sums[m][j], left, right);
        }
    }
  }
}

// The block's sums, in the order of its slices, as [tap][channel of x][channel of dy].
device_inline void add_up_block(const Sums& sums, const Lane& lane, float* own) {
  const int of_m = static_cast<int>(thread_x() % 32 / 4),
            of_n = 2 * static_cast<int>(thread_x() % 4);
  float* const mine = own + lane.slice * TILE_ELEMENTS;
#pragma unroll
  for (int m = 0; m < PRODUCTS_M; ++m)
#pragma unroll
    for (int j = 0; j < PRODUCTS_N; ++j)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int channel = (lane.m * PRODUCTS_M + m) * 16 + c / 2 * 8 + of_m;
        const int number = lane.n * PRODUCTS_N + j;
        if constexpr (FEW_OF_X) {
          const int column = number * 8 + of_n + c % 2;
          if (column < COLUMNS) mine[column * BLOCK_ROWS + channel] = sums[m][j][c];
        } else {
          const int row = of_n + c % 2;
          if (number < TILE_TAPS && row < FEW)
            mine[(number * CHANNELS + channel) * BLOCK_ROWS + row] = sums[m][j][c];
        }
      }
  if constexpr (SLICES > 1) {
    block_barrier();
#pragma unroll 1
    for (int element = thread_x(); element < TILE_ELEMENTS; element += THREADS) {
      float total = own[element];
#pragma unroll
      for (int other = 1; other < SLICES; ++other) total += own[other * TILE_ELEMENTS + element];
      own[element] = total;
    }
  }
}

KILN_KERNEL(wgrad_few_channels_nhwc_mma, THREADS, MIN_BLOCKS, DepthwiseWgradParams, params) {
  unsigned char* const shared = shared_array<unsigned char, SHARED_BYTES>(0);
  const TileShare share = share_of(params);
  const DepthwiseTile tile(share.tile);
  if (thread_x() < 4) reinterpret_cast<u32*>(shared + ZERO_OFFSET)[thread_x()] = 0;

  const Lane lane;
  Sums sums = {};
  u64 next = share.first;
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i, ++next) {
    if (next < share.end) load_stage(params, next, tile, shared + i * STAGE_BYTES);
    async_commit();
  }
  int at = 0, free = (STAGES - 1) * STAGE_BYTES;
#pragma unroll 1
  for (u64 unit = share.first; unit < share.end; ++unit, ++next) {
    async_wait<STAGES - 2>();
    block_barrier();  // and nobody reads the stage before this one any more
    if (next < share.end) load_stage(params, next, tile, shared + free);
    async_commit();
    add_tile(sums, lane, unit, shared + at, shared + ZERO_OFFSET);
    free = at;
    at = at + STAGE_BYTES == ZERO_OFFSET ? 0 : at + STAGE_BYTES;
  }
  async_wait<0>();
  block_barrier();  // then the sums take the place of the stages
  float* const own = reinterpret_cast<float*>(shared);
  add_up_block(sums, lane, own);
  finish_tile<THREADS>(params, share, tile, own);
}
