// Filter gradient of channels-last tensors of 16 bits, depthwise or of groups of up to 8 channels
// of both x and dy, on the tensor cores.
//
// A block has OCTETS octets (8 channels, 16 bytes) and takes tiles of TILE_P rows by TILE_Q columns
// of pixels of dy in turn. TMA loads a tile and its halo of x while the previous tile is
// multiplied. A warp has one octet, every SLICES-th block of 16 columns, and PAIRS pairs of
// neighboring taps in a row of the filter. The rows of a product are the octet's channels of x at
// the two taps of a pair, its columns are dy's channels, and the reduction runs over 16 pixels. The
// warp walks down the rows of x, reads each row once, and multiplies it with all rows of dy that it
// meets, which are in registers. Sums of channels of different groups are ignored. Each sum has its
// own row and column, so infinities and NaN stay in their group.
//
// The warps of a block, and then the blocks of a cluster, add up their sums in order; groups of
// clusters (PARTIAL) leave theirs in the workspace for a second step.
#include "conv/geometry/boxed_spot.cuh"
#include "conv/geometry/boxed_wgrad_params.h"
#include "conv/geometry/tap_distance.cuh"
#include "conv/store/depthwise_wgrad_sum.cuh"
#include "target/bulk_copy.cuh"
#include "target/warp_product.cuh"

constexpr int WARPS = OCTETS * SLICES * SPLITS, THREADS = 32 * WARPS;
constexpr int TILE_Q = 16 * COLUMN_BLOCKS;
constexpr int HEIGHT = (TILE_P - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1;
// The halo's width, a multiple of 8, so that all rows have the same swizzle.
constexpr int WIDTH = ((TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 8) / 8 * 8;
constexpr int PIXEL_BYTES = 16 * OCTETS;
constexpr int X_BYTES = HEIGHT * WIDTH * PIXEL_BYTES, DY_BYTES = TILE_P * TILE_Q * PIXEL_BYTES;
device_inline constexpr int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
constexpr int DY_OFFSET = whole_swizzles(X_BYTES);
constexpr int STAGE_BYTES = DY_OFFSET + whole_swizzles(DY_BYTES);
constexpr int STAGES = 2;
// The offset of 16 zero bytes, which are read in place of pixels beyond dy.
constexpr int ZERO_OFFSET = STAGES * STAGE_BYTES;
constexpr int BARRIERS_OFFSET = ZERO_OFFSET + 16;
constexpr int ALL_PAIRS = (TAPS_S + 1) / 2, PAIRS = (ALL_PAIRS + SPLITS - 1) / SPLITS;
static_assert(BARRIERS_OFFSET + 8 * STAGES <= SHARED_BYTES);
static_assert(SLICES * TILE_ELEMENTS * static_cast<int>(sizeof(float)) <= SHARED_BYTES);
static_assert(FILTER_ROWS == TAPS_R && CHANNELS == ROWS && 8 % ROWS == 0);
static_assert(BLOCK_ROWS == 8 * OCTETS && TILE_P % 2 == 0);

device_inline void bring(const BoxedWgradParams& params, u32 unit, int channel,
                         unsigned char* stage, Mbarrier& landed) {
  const BoxedSpot<TILE_P, TILE_Q> spot(unit);
  const int x[4] = {channel, spot.q * STRIDE_W + LOWER_W, spot.p * STRIDE_H + LOWER_H,
                    static_cast<int>(spot.image)};
  const int dy[4] = {channel, spot.q, spot.p, static_cast<int>(spot.image)};
  landed.arrive_and_expect(X_BYTES + DY_BYTES);
  bulk_load(stage, params.x, landed, x);
  bulk_load(stage + DY_OFFSET, params.dy, landed, dy);
}

// The swizzled offset of 16 bytes of a box with lines of PIXEL_BYTES.
device_inline constexpr int permuted(int place) {
  return place ^ ((place >> 7 & (OCTETS - 1)) << 4);
}

// A warp's share of the products, and its lanes' offsets.
struct Warp {
  int octet, slice, split;
  int lane;
  int x[PAIRS];  // offset of this lane's pixel in the first row and first 16 columns of x
  int dy;        // the same in dy; upper lanes have the second row

  device_inline Warp() : lane(static_cast<int>(thread_x() % 32)) {
    const int warp = static_cast<int>(thread_x() / 32);
    octet = warp % OCTETS, slice = warp / OCTETS % SLICES, split = warp / (OCTETS * SLICES);
    // For ldmatrix, lanes address the rows of four matrices: 8 pixels, the next 8, and both at the
    // next tap.
#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair) {
      // A last pair may lack its second tap; the sums of that are ignored.
      const int number = 2 * (split * PAIRS + pair) + lane / 16;
      const int tap = number < TAPS_S ? number : TAPS_S - 1;
      x[pair] = permuted((lane % 16 * STRIDE_W + tap * DISTANCE_W) * PIXEL_BYTES + octet * 16);
    }
    dy = permuted(lane % 16 * PIXEL_BYTES + octet * 16) + lane / 16 * (TILE_Q * PIXEL_BYTES);
  }
};

using Sums = float[TAPS_R][PAIRS][4];

// Adds the products of 16 columns of a tile, from `column` on.
device_inline void add_columns(Sums& sums, const Warp& warp, const BoxedSpot<TILE_P, TILE_Q>& spot,
                               int column, const unsigned char* stage, const unsigned char* zero) {
  // Beyond dy's last column x may be infinite, and must not be multiplied by dy's zeros.
  const bool exists = OUT_Q % TILE_Q == 0 || spot.q + column + warp.lane % 16 < OUT_Q;
  const unsigned char* const x = exists ? stage + column * STRIDE_W * PIXEL_BYTES : zero;
  const unsigned char* const dy = stage + DY_OFFSET + column * PIXEL_BYTES + warp.dy;
  u32 right[TILE_P][2];
#pragma unroll
  for (int y = 0; y < HEIGHT; ++y) {
    if (y % (2 * STRIDE_H) == 0 && y / STRIDE_H < TILE_P) {
      const int row = y / STRIDE_H;
      u32 both[4];
      load_matrices_transposed(both, dy + row * (TILE_Q * PIXEL_BYTES));
      right[row][0] = both[0], right[row][1] = both[1];
      right[row + 1][0] = both[2], right[row + 1][1] = both[3];
    }
#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair) {
      u32 both[4];
      load_matrices_transposed(both, x + (exists ? warp.x[pair] + y * (WIDTH * PIXEL_BYTES) : 0));
      const u32 left[4] = {both[0], both[2], both[1], both[3]};
#pragma unroll
      for (int r = 0; r < TAPS_R; ++r) {
        const int from = y - r * DISTANCE_H;
        if (from < 0 || from % STRIDE_H != 0 || from / STRIDE_H >= TILE_P) continue;
        const int row = from / STRIDE_H;
        if (OUT_P % TILE_P == 0 || spot.p + row < OUT_P)
          add_product<element_t>(sums[r][pair], left, right[row]);
      }
    }
  }
}

// Adds up the block's sums in the order of its slices, as [tap][channel of x][channel of dy].
device_inline void add_up_block(const Sums& sums, const Warp& warp, float* own) {
  const int channel = warp.octet * 8 + warp.lane / 4;
  const int first = warp.octet * 8 + 2 * (warp.lane % 4);
#pragma unroll
  for (int row = 0; row < TAPS_R; ++row)
#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int column = 2 * (warp.split * PAIRS + pair) + c / 2, out = first + c % 2;
        if (column >= TAPS_S || out / ROWS != channel / CHANNELS) continue;
        const int r = STEP_H < 0 ? TAPS_R - 1 - row : row;
        const int s = STEP_W < 0 ? TAPS_S - 1 - column : column;
        own[warp.slice * TILE_ELEMENTS +
            ((r * TAPS_S + s) * CHANNELS + channel % CHANNELS) * BLOCK_ROWS + out] =
            sums[row][pair][c];
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

KILN_KERNEL(wgrad_depthwise_nhwc_mma, THREADS, MIN_BLOCKS, BoxedWgradParams, params) {
  unsigned char* const shared = shared_array<unsigned char, ZERO_OFFSET + 16>(0);
  Mbarrier* const landed = shared_array<Mbarrier, STAGES>(BARRIERS_OFFSET);
  const TileShare share = share_of(params.common);
  const DepthwiseTile tile(share.tile);
  const u32 first = static_cast<u32>(share.first), end = static_cast<u32>(share.end);
  if (thread_x() < 4) reinterpret_cast<u32*>(shared + ZERO_OFFSET)[thread_x()] = 0;
  if (thread_x() == 0) {
    for (int i = 0; i < STAGES; ++i) landed[i].init(1);
    mbarriers_are_made();
    prefetch_map(params.x);
    prefetch_map(params.dy);
    if (first < end) bring(params, first, tile.out, shared, landed[0]);
  }
  block_barrier();

  const Warp warp;
  Sums sums = {};
#pragma unroll 1
  for (u32 unit = first; unit < end; ++unit) {
    const u32 turn = unit - first, stage = turn % STAGES;
    if (thread_x() == 0 && unit + 1 < end)
      bring(params, unit + 1, tile.out, shared + (STAGES - 1 - stage) * STAGE_BYTES,
            landed[STAGES - 1 - stage]);
    landed[stage].wait(turn / STAGES & 1);
    const BoxedSpot<TILE_P, TILE_Q> spot(unit);
#pragma unroll 1
    for (int block = warp.slice; block < COLUMN_BLOCKS; block += SLICES)
      add_columns(sums, warp, spot, 16 * block, shared + stage * STAGE_BYTES, shared + ZERO_OFFSET);
    block_barrier();  // all threads have read the stage, which is loaded next
  }
  float* const own = reinterpret_cast<float*>(shared);  // overwrites the stages
  add_up_block(sums, warp, own);
  finish_tile<THREADS>(params.common, share, tile, own);
}
