// Filter gradient of channels-last tensors of 16 bits with few channels a group, on the tensor
// cores: depthwise, with channel multipliers, small groups.
//
// A block has OCTETS octets (8 channels, 16 bytes) of x, all channels of dy of their groups, and
// FILTER_ROWS rows of the filter. It takes tiles of TILE_P x TILE_Q pixels of dy in turn. A tile
// and its halo of x are loaded into shared memory as [pixel][octet] while the previous tile is
// multiplied. A warp has one octet of x: the rows of a product are its 8 channels at two taps, the
// columns an octet of dy, and the reduction runs over 16 pixels. Sums of channels of different
// groups are ignored. Each sum has its own row and column, so infinities and NaN stay in their
// group.
//
// The warps of a block, and then the blocks of a cluster, add up their sums in order; groups of
// clusters (PARTIAL) leave theirs in the workspace for a second step.
#include "common/magic.cuh"
#include "conv/geometry/spot.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/store/depthwise_wgrad_sum.cuh"
#include "target/async_copy.cuh"
#include "target/warp_product.cuh"

constexpr int THREADS = 32 * OCTETS * SLICES;
constexpr int HEIGHT = (TILE_P - 1) * STRIDE_H + (FILTER_ROWS - 1) * DISTANCE_H + 1,
              WIDTH = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
constexpr int PIXELS = TILE_P * TILE_Q;
// Octets of dy: those of a block, and those that share a group with an octet of x.
constexpr int DY_OCTETS = BLOCK_ROWS / 8;
constexpr int MET = CHANNELS <= 8 ? (ROWS > CHANNELS ? ROWS / CHANNELS : 1) : (ROWS + 7) / 8;
constexpr int PITCH_X = OCTETS * 16 + 16, PITCH_DY = DY_OCTETS * 16 + 16;
constexpr int DY_OFFSET = HEIGHT * WIDTH * PITCH_X;
constexpr int STAGE_BYTES = DY_OFFSET + PIXELS * PITCH_DY;
constexpr int ZERO_OFFSET = 2 * STAGE_BYTES;  // 16 zero bytes, read in place of missing pixels
constexpr int PAIRS = (TILE_TAPS + 1) / 2;
static_assert(ZERO_OFFSET + 16 <= SHARED_BYTES);
static_assert(SLICES * TILE_ELEMENTS * sizeof(float) <= SHARED_BYTES);
static_assert(BLOCK_ROWS / ROWS * CHANNELS == 8 * OCTETS && PAIRS * MET <= 32);

// Starts copying a tile of dy and its halo of x; pixels outside are zero.
device_inline void load_stage(const DepthwiseWgradParams& params, u64 unit,
                              const DepthwiseTile& tile, unsigned char* stage) {
  const Spot spot = spot_of<TILE_P, TILE_Q>(unit);
  const int lowest = STEP_H < 0 ? TAPS_R - tile.row - FILTER_ROWS : tile.row;
  const int h0 = spot.p * STRIDE_H + LOWER_H + lowest * DISTANCE_H;
  const int w0 = spot.q * STRIDE_W + LOWER_W;
  const element_t* const x = static_cast<const element_t*>(params.x) +
                             spot.image * SOURCE_STRIDE_N + first_channel(tile.out);
#pragma unroll 1
  for (int i = thread_x(); i < HEIGHT * WIDTH * OCTETS; i += THREADS) {
    const int place = i / OCTETS, octet = i % OCTETS;
    const int row = place / WIDTH, column = place - row * WIDTH;
    const int h = h0 + row, w = w0 + column;
    const bool valid = static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                       static_cast<u32>(w) < static_cast<u32>(SOURCE_W) &&
                       first_channel(tile.out) + octet * 8 < GROUPS * CHANNELS;
    async_copy<16>(stage + place * PITCH_X + octet * 16,
                   x + (static_cast<i64>(h) * SOURCE_STRIDE_H +
                        static_cast<i64>(w) * SOURCE_STRIDE_W + octet * 8),
                   valid);
  }
  const element_t* const dy =
      static_cast<const element_t*>(params.dy) + spot.image * OUT_STRIDE_N + tile.out;
#pragma unroll 1
  for (int i = thread_x(); i < PIXELS * DY_OCTETS; i += THREADS) {
    const int pixel = i / DY_OCTETS, octet = i % DY_OCTETS;
    const int p = spot.p + pixel / TILE_Q, q = spot.q + pixel % TILE_Q;
    const bool valid = p < OUT_P && q < OUT_Q && tile.out + octet * 8 < GROUPS * ROWS;
    async_copy<16>(
        stage + DY_OFFSET + pixel * PITCH_DY + octet * 16,
        dy + (static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q + octet * 8),
        valid);
  }
}

// The offset of a tap of the block from a pixel's first tap.
constexpr int TAP_STEP_H = (STEP_H < 0 ? -1 : 1) * DISTANCE_H * WIDTH * PITCH_X,
              TAP_STEP_W = (STEP_W < 0 ? -1 : 1) * DISTANCE_W * PITCH_X,
              TAP_FIRST = (STEP_H < 0 ? (FILTER_ROWS - 1) * DISTANCE_H * WIDTH * PITCH_X : 0) +
                          (STEP_W < 0 ? (TAPS_S - 1) * DISTANCE_W * PITCH_X : 0);

using Sums = float[PAIRS][MET][4];

// Adds the products of the warp's pixels of a tile.
device_inline void add_tile(Sums& sums, const Spot& spot, const unsigned char* stage,
                            const unsigned char* zero) {
  const int lane = static_cast<int>(thread_x() % 32), warp = static_cast<int>(thread_x() / 32);
  const int octet = warp % OCTETS, upper = lane / 16;
  const int dy_octet = octet * 8 / CHANNELS * ROWS / 8;
#pragma unroll 1
  for (int first = warp / OCTETS * 16; first < PIXELS; first += 16 * SLICES) {
    // For ldmatrix, lanes address the rows of four matrices: 8 pixels, the next 8, and both again.
    const int pixel = first + lane % 16;
    const int row = pixel / TILE_Q, column = pixel % TILE_Q;
    const bool inside = pixel < PIXELS;
    // Beyond dy's end x may be infinite, and must not be multiplied by dy's zeros.
    const bool exists = inside && spot.p + row < OUT_P && spot.q + column < OUT_Q;
    const unsigned char* const dy =
        stage + DY_OFFSET + pixel * PITCH_DY + (dy_octet + (MET > 1 ? upper : 0)) * 16;
    u32 right[MET][2];
#pragma unroll
    for (int d = 0; d < MET; d += 2) {
      u32 both[4];
      load_matrices_transposed(both, inside ? dy + d * 16 : zero);
      right[d][0] = both[0], right[d][1] = both[1];
      if constexpr (MET > 1) right[d + 1][0] = both[2], right[d + 1][1] = both[3];
    }
    const unsigned char* const x =
        stage + TAP_FIRST + octet * 16 + (row * STRIDE_H * WIDTH + column * STRIDE_W) * PITCH_X;
#pragma unroll
    for (int pair = 0; pair < PAIRS; ++pair) {
      constexpr auto offset = [](int tap) {
        return tap / TAPS_S * TAP_STEP_H + tap % TAPS_S * TAP_STEP_W;
      };
      const int here = offset(2 * pair), there = offset(2 * pair + 1);
      const bool missing = 2 * pair + 1 == TILE_TAPS && upper != 0;
      u32 both[4];
      load_matrices_transposed(both, exists && !missing ? x + (upper != 0 ? there : here) : zero);
      const u32 left[4] = {both[0], both[2], both[1], both[3]};
#pragma unroll
      for (int d = 0; d < MET; ++d) add_product<element_t>(sums[pair][d], left, right[d]);
    }
  }
}

// Adds up the block's sums in the order of its slices, as [tap][channel of x][channel of dy].
device_inline void add_up_block(const Sums& sums, float* own) {
  const int lane = static_cast<int>(thread_x() % 32), warp = static_cast<int>(thread_x() / 32);
  const int octet = warp % OCTETS, slice = warp / OCTETS;
  const int channel = octet * 8 + lane / 4;
  const int first = octet * 8 / CHANNELS * ROWS / 8 * 8 + 2 * (lane % 4);
#pragma unroll
  for (int pair = 0; pair < PAIRS; ++pair)
#pragma unroll
    for (int d = 0; d < MET; ++d)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int tap = 2 * pair + c / 2, row = first + d * 8 + c % 2;
        if (tap < TILE_TAPS && row / ROWS == channel / CHANNELS)
          own[slice * TILE_ELEMENTS + (tap * CHANNELS + channel % CHANNELS) * BLOCK_ROWS + row] =
              sums[pair][d][c];
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

KILN_KERNEL(wgrad_grouped_nhwc_mma, THREADS, MIN_BLOCKS, DepthwiseWgradParams, params) {
  unsigned char* const shared = shared_array<unsigned char, SHARED_BYTES>(0);
  const TileShare share = share_of(params);
  const DepthwiseTile tile(share.tile);
  if (thread_x() < 4) reinterpret_cast<u32*>(shared + ZERO_OFFSET)[thread_x()] = 0;

  Sums sums = {};
  if (share.first < share.end) load_stage(params, share.first, tile, shared);
  async_commit();
  int stage = 0;
#pragma unroll 1
  for (u64 unit = share.first; unit < share.end; ++unit) {
    if (unit + 1 < share.end) load_stage(params, unit + 1, tile, shared + (STAGE_BYTES - stage));
    async_commit();
    async_wait<1>();
    block_barrier();  // the tile has landed
    add_tile(sums, spot_of<TILE_P, TILE_Q>(unit), shared + stage, shared + ZERO_OFFSET);
    block_barrier();  // all threads have read the stage, which is loaded next
    stage = STAGE_BYTES - stage;
  }
  float* const own = reinterpret_cast<float*>(shared);  // overwrites the stages
  add_up_block(sums, own);
  finish_tile<THREADS>(params, share, tile, own);
}
