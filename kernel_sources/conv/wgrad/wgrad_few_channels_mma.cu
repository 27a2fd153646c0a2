// Filter gradient on the tensor cores, for tensors of 16 bits or f32 of which x or dy has few
// channels. Tensors are NHWC or, with few channels of x, NCHW (PLANAR).
//
// A block takes tiles of TILE_P x TILE_Q pixels of dy in turn. A tile of dy and its halo of x are
// loaded into shared memory while previous tiles are multiplied: BLOCK_MANY channels of each pixel
// of the tensor with many channels, and whole rows of the other one. The rows of a product are 16
// of the many channels, and the reduction runs over pixels of a row. With few channels of x, the
// columns are taps and channels, each read at its own offset; with few channels of dy, the columns
// are these channels, and each tap has products of its own. Every sum belongs to one element of dw,
// so infinities and NaN stay in it.
//
// The warps of a block, and then the blocks of a cluster, add up their sums in order; groups of
// clusters (PARTIAL) leave theirs in the workspace for a second step.
#include "common/magic.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/geometry/volume_spot.cuh"
#include "conv/store/depthwise_wgrad_sum.cuh"
#include "conv/wgrad/few_channels_products.cuh"
#include "target/async_copy.cuh"

constexpr int THREADS = 32 * WARPS_M * WARPS_N * SLICES;
constexpr int X_HEIGHT = (TILE_P - 1) * STRIDE_H + (FILTER_ROWS - 1) * DISTANCE_H + 1,
              X_WIDTH = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
// Pixels of the tensor with many channels: [pixel][channel] or, PLANAR, [row][channel][column].
constexpr int MANY_ROWS = FEW_OF_X ? TILE_P : X_HEIGHT, MANY_COLUMNS = FEW_OF_X ? TILE_Q : X_WIDTH;
constexpr int VECTOR = MANY_COPY / ELEMENT_BYTES, VECTORS = (PLANAR ? TILE_Q : BLOCK_MANY) / VECTOR;
constexpr int MANY_BYTES = MANY_ROWS * (PLANAR ? BLOCK_MANY : MANY_COLUMNS) * MANY_PITCH;
// Rows of the other tensor, from the copy on that has a row's first element: with all channels or,
// PLANAR, channel by channel.
constexpr int FEW = FEW_OF_X ? CHANNELS : BLOCK_ROWS;
constexpr int FEW_ROWS = FEW_OF_X ? X_HEIGHT : TILE_P;
constexpr int FEW_PLANES = PLANAR ? FEW : 1, FEW_IN_ROW = FEW / FEW_PLANES;
constexpr int SHIFT = FEW_OF_X ? elements_before<COPY_BYTES>(LOWER_W, FEW_IN_ROW) : 0;
constexpr int FEW_COPIES =
    row_copies<COPY_BYTES>(SHIFT, (FEW_OF_X ? X_WIDTH : TILE_Q) * FEW_IN_ROW);
constexpr int FEW_OFFSET = MANY_BYTES;
constexpr int STAGE_BYTES = FEW_OFFSET + FEW_PLANES * FEW_ROWS * FEW_PITCH;
static_assert(FEW_OF_X || !PLANAR);
constexpr int ZERO_OFFSET = STAGES * STAGE_BYTES;  // 16 zero bytes, read in place of missing pixels
static_assert(STAGE_BYTES % 16 == 0);
static_assert(ZERO_OFFSET + 16 <= SHARED_BYTES);
static_assert(SLICES * TILE_ELEMENTS * sizeof(float) <= SHARED_BYTES);
static_assert(TILE_Q % STEP_PIXELS == 0 && BLOCK_MANY == 16 * PRODUCTS_M * WARPS_M);
// Columns of products; with few channels of dy, taps.
constexpr int COLUMNS = TILE_TAPS * FEW;
static_assert(FEW_OF_X ? 8 * WARPS_N * PRODUCTS_N >= COLUMNS
                       : WARPS_N * PRODUCTS_N >= TILE_TAPS && FEW <= 8);

// The distance of a row of the filter from the one with the lowest position, in rows of the halo.
device_inline constexpr int tap_row(int r) {
  return (STEP_H < 0 ? FILTER_ROWS - 1 - r : r) * DISTANCE_H;
}
device_inline constexpr int tap_column(int s) {
  return (STEP_W < 0 ? TAPS_S - 1 - s : s) * DISTANCE_W;
}

// Starts copying a tile of dy and its halo of x; pixels outside are zero.
device_inline void load_stage(const DepthwiseWgradParams& params, u64 unit,
                              const DepthwiseTile& tile, unsigned char* stage) {
  const VolumeSpot spot = volume_spot_of<TILE_P, TILE_Q>(unit);
  const int lowest = STEP_H < 0 ? TAPS_R - tile.row - FILTER_ROWS : tile.row;
  const int d = spot.o * STRIDE_D + ORIGIN_D + tile.plane * STEP_D;
  const int h = spot.p * STRIDE_H + LOWER_H + lowest * DISTANCE_H, w = spot.q * STRIDE_W + LOWER_W;
  const bool in_depth = static_cast<u32>(d) < static_cast<u32>(SOURCE_D);
  const element_t* const x = static_cast<const element_t*>(params.x) +
                             spot.image * SOURCE_STRIDE_N + static_cast<i64>(d) * SOURCE_STRIDE_D;
  const element_t* const dy = static_cast<const element_t*>(params.dy) + spot.image * OUT_STRIDE_N +
                              static_cast<i64>(spot.o) * OUT_STRIDE_O;
#pragma unroll 1
  for (int i = thread_x(); i < MANY_BYTES / MANY_PITCH * VECTORS; i += THREADS) {
    constexpr int LINES = PLANAR ? BLOCK_MANY : MANY_COLUMNS;  // lines in a row
    const int place = i / VECTORS, vector = i % VECTORS;
    const int row = place / LINES, column = place - row * LINES;
    unsigned char* const to = stage + place * MANY_PITCH + vector * MANY_COPY;
    if constexpr (PLANAR) {
      const int p = spot.p + row, q = spot.q + vector * VECTOR, channel = tile.out + column;
      async_copy<MANY_COPY>(to,
                            dy + (static_cast<i64>(channel) * OUT_STRIDE_ROW +
                                  static_cast<i64>(p) * OUT_STRIDE_P + q),
                            p < OUT_P && q < OUT_Q && channel < ROWS);
    } else if constexpr (FEW_OF_X) {
      const int p = spot.p + row, q = spot.q + column, channel = tile.out + vector * VECTOR;
      async_copy<MANY_COPY>(
          to,
          dy + (static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q + channel),
          p < OUT_P && q < OUT_Q && channel < ROWS);
    } else {
      const int channel = tile.in + vector * VECTOR;
      const bool inside = in_depth && static_cast<u32>(h + row) < static_cast<u32>(SOURCE_H) &&
                          static_cast<u32>(w + column) < static_cast<u32>(SOURCE_W);
      async_copy<MANY_COPY>(to,
                            x + (static_cast<i64>(h + row) * SOURCE_STRIDE_H +
                                 static_cast<i64>(w + column) * SOURCE_STRIDE_W + channel),
                            inside && channel < GROUP_CHANNELS);
    }
  }
  constexpr int LENGTH = (FEW_OF_X ? SOURCE_W : OUT_Q) * FEW_IN_ROW;
#pragma unroll
  for (int plane = 0; plane < FEW_PLANES; ++plane)
    copy_whole_rows<THREADS, FEW_ROWS, FEW_COPIES, FEW_PITCH, COPY_BYTES, LENGTH>(
        stage + FEW_OFFSET + plane * (FEW_ROWS * FEW_PITCH),
        FEW_OF_X ? x + static_cast<i64>(plane) * SOURCE_STRIDE_C : dy,
        FEW_OF_X ? SOURCE_STRIDE_H : OUT_STRIDE_P, FEW_OF_X ? h : spot.p,
        FEW_OF_X ? SOURCE_H : OUT_P, (FEW_OF_X ? w : spot.q) * FEW_IN_ROW - SHIFT,
        !FEW_OF_X || in_depth);
}

using Sums = float[PRODUCTS_M][PRODUCTS_N][4];

// A column of products, numbered as in memory, so that neighboring lanes read neighboring elements.
struct Column {
  int channel, r, s;
  device_inline explicit Column(int number) {
    const int tap = PLANAR ? number % TILE_TAPS : number / FEW;
    channel = PLANAR ? number / TILE_TAPS : number % FEW;
    r = tap / TAPS_S, s = tap % TAPS_S;
  }
};

// Bytes from a pixel's element of a column to the next pixel's.
constexpr int COLUMN_BYTES = (FEW_OF_X ? STRIDE_W : 1) * FEW_IN_ROW * ELEMENT_BYTES;

struct Lane {
  int number;
  int m, n, slice;         // position of the warp in the block
  int many, few;           // offset of its first pixel in operand A, and in a column
  int offset[PRODUCTS_N];  // offsets of the warp's columns, or of its taps

  device_inline Lane() {
    const int warp = static_cast<int>(thread_x() / 32);
    number = static_cast<int>(thread_x() % 32);
    m = warp % WARPS_M, n = warp / WARPS_M % WARPS_N, slice = warp / (WARPS_M * WARPS_N);
    many = StepProducts::left_pixel(number) * ((FEW_OF_X ? 1 : STRIDE_W) * PIXEL_BYTES) +
           (m * (PRODUCTS_M * 16) + StepProducts::left_channel(number)) * CHANNEL_BYTES;
    few = StepProducts::right_pixel(number) * COLUMN_BYTES;
    const int in_octet = number / 4;
    if (!FEW_OF_X) few += (in_octet < FEW ? in_octet : 0) * ELEMENT_BYTES;
#pragma unroll
    for (int j = 0; j < PRODUCTS_N; ++j) {
      const int index = FEW_OF_X ? (n * PRODUCTS_N + j) * 8 + in_octet : n * PRODUCTS_N + j;
      if constexpr (FEW_OF_X) {
        const Column column(index < COLUMNS ? index : 0);
        const int row = (PLANAR ? column.channel * FEW_ROWS : 0) + tap_row(column.r);
        offset[j] = row * FEW_PITCH +
                    (SHIFT + tap_column(column.s) * FEW_IN_ROW + (PLANAR ? 0 : column.channel)) *
                        ELEMENT_BYTES;
      } else {
        const int tap = index < TILE_TAPS ? index : 0;
        offset[j] = (tap_row(tap / TAPS_S) * X_WIDTH + tap_column(tap % TAPS_S)) * MANY_PITCH;
      }
    }
  }
};

// Adds the products of the warp's pixels of a tile.
device_inline void add_tile(Sums& sums, const Lane& lane, u64 unit, const unsigned char* stage,
                            const unsigned char* zero) {
  constexpr int STEPS_Q = TILE_Q / STEP_PIXELS, TOGETHER = StepProducts::TOGETHER;
  constexpr int LANE_PIXELS = StepProducts::LANE_PIXELS, APART = StepProducts::APART;
  constexpr bool WHOLE = OUT_Q % TILE_Q == 0;
  static_assert(PRODUCTS_M % TOGETHER == 0);
  const VolumeSpot spot = volume_spot_of<TILE_P, TILE_Q>(unit);
#pragma unroll 1
  for (int step = lane.slice; step < TILE_P * STEPS_Q; step += SLICES) {
    const int row = step / STEPS_Q, first = step % STEPS_Q * STEP_PIXELS;
    if (spot.p + row >= OUT_P) break;
    const int left_q = OUT_Q - spot.q - first;  // pixels that exist
    if (!WHOLE && left_q <= 0) continue;
    // Beyond dy's end x may be infinite, and must not be multiplied by dy's zeros.
    u32 mask[2] = {~0u, ~0u};
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (!WHOLE && FEW_OF_X) mask[half] = StepProducts::right_mask(half, lane.number, left_q);
    const unsigned char* const few = stage + FEW_OFFSET + lane.few + first * COLUMN_BYTES +
                                     row * ((FEW_OF_X ? STRIDE_H : 1) * FEW_PITCH);
    constexpr int STEP_BYTES = (FEW_OF_X ? 1 : STRIDE_W) * PIXEL_BYTES;  // from pixel to pixel
    const unsigned char* const many = stage + lane.many + first * STEP_BYTES +
                                      row * ((FEW_OF_X ? 1 : STRIDE_H) * (MANY_BYTES / MANY_ROWS));
    if constexpr (FEW_OF_X) {
      typename StepProducts::Left left[PRODUCTS_M];
#pragma unroll
      for (int m = 0; m < PRODUCTS_M; m += TOGETHER) {
        const unsigned char* pixels[LANE_PIXELS];
#pragma unroll
        for (int i = 0; i < LANE_PIXELS; ++i)
          pixels[i] = many + (i * APART * STEP_BYTES + m * (16 * CHANNEL_BYTES));
        StepProducts::load(left + m, pixels);
      }
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j)
        StepProducts::add(sums, 0, j, left,
                          StepProducts::load_right<COLUMN_BYTES>(few + lane.offset[j], mask));
    } else {
      const auto right = StepProducts::load_right<COLUMN_BYTES>(few, mask);
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j)
#pragma unroll
        for (int m = 0; m < PRODUCTS_M; m += TOGETHER) {
          const unsigned char* pixels[LANE_PIXELS];
#pragma unroll
          for (int i = 0; i < LANE_PIXELS; ++i)
            pixels[i] =
                WHOLE || StepProducts::left_pixel(lane.number) + i * APART < left_q
                    ? many + (lane.offset[j] + i * APART * STEP_BYTES + m * (16 * CHANNEL_BYTES))
                    : zero;
          typename StepProducts::Left left[TOGETHER];
          StepProducts::load(left, pixels);
          StepProducts::add(sums, m, j, left, right);
        }
    }
  }
}

// One of the block's sums by its definition, over the block's units.
device_inline compute_t defined_sum(const DepthwiseWgradParams& params, const TileShare& share,
                                    const DepthwiseTile& tile, int element) {
  const int tap = element / TAP_ELEMENTS, rest = element - tap * TAP_ELEMENTS;
  const int channel = tile.in + rest / BLOCK_ROWS, out = tile.out + rest % BLOCK_ROWS;
  const int r = tile.row + tap / TAPS_S;
  compute_t sum = 0;
  if (out >= ROWS || channel >= GROUP_CHANNELS || r >= TAPS_R) return sum;
  const int from_h = LOWER_H + (STEP_H < 0 ? TAPS_R - 1 - r : r) * DISTANCE_H;
  const int from_w = LOWER_W + tap_column(tap % TAPS_S);
#pragma unroll 1
  for (u64 unit = share.first; unit < share.end; ++unit) {
    const VolumeSpot spot = volume_spot_of<TILE_P, TILE_Q>(unit);
    const int d = spot.o * STRIDE_D + ORIGIN_D + tile.plane * STEP_D;
    const element_t* const x =
        static_cast<const element_t*>(params.x) + spot.image * SOURCE_STRIDE_N +
        static_cast<i64>(d) * SOURCE_STRIDE_D + static_cast<i64>(channel) * SOURCE_STRIDE_C;
    const element_t* const dy =
        static_cast<const element_t*>(params.dy) + spot.image * OUT_STRIDE_N +
        static_cast<i64>(spot.o) * OUT_STRIDE_O + static_cast<i64>(out) * OUT_STRIDE_ROW;
#pragma unroll 1
    for (int i = 0; i < TILE_P * TILE_Q; ++i) {
      const int p = spot.p + i / TILE_Q, q = spot.q + i % TILE_Q;
      if (p >= OUT_P || q >= OUT_Q) continue;
      const int h = p * STRIDE_H + from_h, w = q * STRIDE_W + from_w;
      const bool inside = static_cast<u32>(d) < static_cast<u32>(SOURCE_D) &&
                          static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                          static_cast<u32>(w) < static_cast<u32>(SOURCE_W);
      if (EXCHANGED && !inside) continue;
      const compute_t at_x = inside ? to_compute(x[static_cast<i64>(h) * SOURCE_STRIDE_H +
                                                   static_cast<i64>(w) * SOURCE_STRIDE_W])
                                    : compute_t(0);
      sum +=
          at_x *
          to_compute(dy[static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q]);
    }
  }
  return sum;
}

// Adds up the block's sums in the order of its slices, as [tap][channel of x][channel of dy].
device_inline void add_up_block(const Sums& sums, const Lane& lane, float* own,
                                const DepthwiseWgradParams& params, const TileShare& share,
                                const DepthwiseTile& tile) {
  float* const mine = own + lane.slice * TILE_ELEMENTS;
#pragma unroll
  for (int j = 0; j < PRODUCTS_N; ++j)
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int number = lane.n * PRODUCTS_N + j, in_octet = 2 * (lane.number % 4) + side;
      const int index = FEW_OF_X ? number * 8 + in_octet : number;
      // PLANAR: columns are numbered channel by channel.
      const int at = PLANAR ? index % TILE_TAPS * FEW + index / TILE_TAPS : index;
      if (FEW_OF_X ? index >= COLUMNS : index >= TILE_TAPS || in_octet >= FEW) continue;
#pragma unroll
      for (int m = 0; m < PRODUCTS_M; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int channel =
              lane.m * (PRODUCTS_M * 16) + StepProducts::channel(m, half, lane.number);
          const float sum = sums[m][j][2 * half + side];
          if constexpr (FEW_OF_X)
            mine[at * BLOCK_ROWS + channel] = sum;
          else
            mine[(at * CHANNELS + channel) * BLOCK_ROWS + in_octet] = sum;
        }
    }
  if constexpr (SLICES > 1 || CHECKED) {
    block_barrier();
#pragma unroll 1
    for (int element = thread_x(); element < TILE_ELEMENTS; element += THREADS) {
      float total[1] = {own[element]};
#pragma unroll
      for (int other = 1; other < SLICES; ++other) total[0] += own[other * TILE_ELEMENTS + element];
      if (!scale_back(total, 1)) total[0] = defined_sum(params, share, tile, element);
      own[element] = total[0];
    }
  }
}

KILN_KERNEL(wgrad_few_channels_mma, THREADS, MIN_BLOCKS, DepthwiseWgradParams, params) {
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
    block_barrier();  // the stage has landed, and no thread still reads the previous one
    if (next < share.end) load_stage(params, next, tile, shared + free);
    async_commit();
    add_tile(sums, lane, unit, shared + at, shared + ZERO_OFFSET);
    free = at;
    at = at + STAGE_BYTES == ZERO_OFFSET ? 0 : at + STAGE_BYTES;
  }
  async_wait<0>();
  block_barrier();  // all threads have read the stages, which the sums overwrite
  float* const own = reinterpret_cast<float*>(shared);
  add_up_block(sums, lane, own, params, share, tile);
  finish_tile<THREADS>(params, share, tile, own);
}
