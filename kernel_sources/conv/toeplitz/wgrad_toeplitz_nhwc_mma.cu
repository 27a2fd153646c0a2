// Depthwise filter gradient of stride 1 in NHWC, for filters so long that tensor cores pay off
// although they also multiply zeros.
//
// Each row of dy adds to dw, seen as [column][row], the Toeplitz matrix of that row times rows of
// x. Operand A is 16 columns of the filter by 16 columns of x; operand B is 16 columns of the 8
// rows of x that 8 rows of the filter use. A block takes 8 channels (16 bytes), and tiles of TILE_P
// x 16 * D_TILES pixels of dy in turn. Two warps share a channel: each takes every other row, and
// has sums of the whole filter, M_TILES x N_TILES products.
//
// Shared memory holds three things: the part of x that a tile reads, channel by channel, as
// [row][column]; dy as [channel][row][2][DY_PLACES] with zeros around it, where the second copy is
// shifted by one element so that every pair begins at a word in one of the copies; and a ring of
// boxes, BOX_ROWS rows of 8 channels each, which TMA loads: those of x, then those of dy.
//
// A zero that is not an element of dy must not multiply an infinity or NaN. So the threads that
// rearrange x check its elements, and a tile with one that is not finite is computed by its
// definition.
#include "common/compute_type.cuh"
#include "conv/geometry/boxed_spot.cuh"
#include "conv/geometry/boxed_wgrad_params.h"
#include "conv/store/depthwise_wgrad_sum.cuh"
#include "conv/toeplitz/lay_out.cuh"
#include "target/bulk_copy.cuh"
#include "target/matrix_load.cuh"
#include "target/warp_product.cuh"

constexpr int SHARERS = 2, THREADS = 32 * OCTET * SHARERS;  // SHARERS: warps of a channel
constexpr int TILE_Q = 16 * D_TILES;
constexpr int M_TILES = (TAPS_S + 15) / 16, N_TILES = (TAPS_R + 7) / 8;
constexpr int HALO_TILES = (D_TILES + M_TILES + 1) / 2 * 2;  // tiles of 16 columns, read in pairs
constexpr int HALO_W = 16 * HALO_TILES, HALO_H = TILE_P + 8 * N_TILES - 1;
static_assert(CHANNELS == 1 && ROWS == 1 && BLOCK_ROWS == OCTET && FILTER_ROWS == TAPS_R);

// Sizes in elements. The pitch of rows is an odd number of 16 bytes, so that rows begin in
// different banks.
constexpr int PLANE_PITCH = HALO_W + 8, PLANE = HALO_H * PLANE_PITCH;
constexpr int DY_FRONT = 16, DY_PLACES = DY_FRONT + TILE_Q + 16, DY_ROW = 2 * DY_PLACES;
constexpr int X_BOXES = (HALO_H + BOX_ROWS - 1) / BOX_ROWS,
              DY_BOXES = (TILE_P + BOX_ROWS - 1) / BOX_ROWS;
constexpr int BOXES = X_BOXES + DY_BOXES;  // boxes of a tile
constexpr int X_BOX_BYTES = BOX_ROWS * HALO_W * OCTET * 2,
              DY_BOX_BYTES = BOX_ROWS * TILE_Q * OCTET * 2;
static_assert(X_BOX_BYTES >= DY_BOX_BYTES && X_BOX_BYTES % 128 == 0);

device_inline constexpr int larger(int a, int b) { return a > b ? a : b; }
device_inline constexpr int smaller(int a, int b) { return a < b ? a : b; }
constexpr int PLANES_AT = STAGES * X_BOX_BYTES;
// At the end this memory holds the block's sums.
constexpr int PLANES_BYTES = larger(OCTET * PLANE * 2, TILE_ELEMENTS * 4);
constexpr int DY_AT = (PLANES_AT + PLANES_BYTES + 15) / 16 * 16;
constexpr int DY_ELEMENTS = OCTET * TILE_P * DY_ROW;
constexpr int BARRIERS_AT = DY_AT + DY_ELEMENTS * 2;
constexpr int FLAG_AT = BARRIERS_AT + (STAGES * 8 + 15) / 16 * 16;
static_assert(FLAG_AT + 16 <= SHARED_BYTES);

using Sums = float[M_TILES][N_TILES][4];

// Loads the boxes of a block's tiles through a ring, one after the other.
struct Boxes {
  const BoxedWgradParams& params;
  unsigned char* ring;
  Mbarrier* landed;
  u32 first, end;  // the block's units, from `first` to `end`
  int channel;

  // Starts to load the block's box number `box`, if there is one.
  device_inline void ask(u32 box) const {
    const u32 turn = box / BOXES;
    if (turn >= end - first) return;
    const BoxedSpot<TILE_P, TILE_Q> spot(first + turn);
    const int number = static_cast<int>(box - turn * BOXES);
    Mbarrier& barrier = landed[box % STAGES];
    unsigned char* const to = ring + box % STAGES * X_BOX_BYTES;
    if (number < X_BOXES) {
      const int at[4] = {channel, spot.q + LOWER_W, spot.p + LOWER_H + number * BOX_ROWS,
                         static_cast<int>(spot.image)};
      barrier.arrive_and_expect(X_BOX_BYTES);
      bulk_load(to, params.x, barrier, at);
    } else {
      const int at[4] = {channel, spot.q, spot.p + (number - X_BOXES) * BOX_ROWS,
                         static_cast<int>(spot.image)};
      barrier.arrive_and_expect(DY_BOX_BYTES);
      bulk_load(to, params.dy, barrier, at);
    }
  }
  device_inline const u32* wait(u32 box) const {
    landed[box % STAGES].wait(box / STAGES & 1);
    return reinterpret_cast<const u32*>(ring + box % STAGES * X_BOX_BYTES);
  }
};

// Computes a unit by mma.sync. `plane` and `dy` are those of the warp's channel.
device_inline void multiply(const element_t* plane, const element_t* dy, int first_row,
                            Sums& sums) {
  const int lane = static_cast<int>(thread_x() % 32), g = lane / 4, j = lane % 4;
  // A lane's word of diagonal matrix d is the elements at 8d + 2j - g and after it, from the copy
  // of dy in which they share a word.
  const element_t* const diagonal = dy + DY_FRONT + 2 * j - g + (g % 2 != 0 ? DY_PLACES - 1 : 0);
  const element_t* const source = plane + lane % 8 * PLANE_PITCH + lane / 8 * 8;
#pragma unroll 1
  for (int p = first_row; p < TILE_P; p += SHARERS) {
    u32 word[2 * D_TILES + 3];
#pragma unroll
    for (int d = -1; d < 2 * D_TILES + 2; ++d)
      word[d + 1] = *reinterpret_cast<const u32*>(diagonal + p * DY_ROW + 8 * d);
    u32 right[N_TILES][HALO_TILES][2];
#pragma unroll
    for (int n = 0; n < N_TILES; ++n)
#pragma unroll
      for (int k = 0; k < HALO_TILES; k += 2) {
        u32 both[4];
        load_matrices(both, source + (8 * n + p) * PLANE_PITCH + 16 * k);
        right[n][k][0] = both[0], right[n][k][1] = both[1];
        right[n][k + 1][0] = both[2], right[n][k + 1][1] = both[3];
      }
#pragma unroll
    for (int d = 0; d <= D_TILES; ++d) {
      const u32 left[4] = {word[2 * d + 1], word[2 * d], word[2 * d + 2], word[2 * d + 1]};
#pragma unroll
      for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int n = 0; n < N_TILES; ++n) add_product<element_t>(sums[m][n], left, right[n][d + m]);
    }
  }
}

// Computes a unit by its definition, over the pixels that exist. A lane has the same `sums` as
// after products: (column g of the filter, rows 2j and 2j + 1) and (column g + 8, the same rows).
device_inline void add_up(const element_t* plane, const element_t* dy, int first_row,
                          const BoxedSpot<TILE_P, TILE_Q>& spot, Sums& sums) {
  const int lane = static_cast<int>(thread_x() % 32), g = lane / 4, j = lane % 4;
  const int columns = smaller(TILE_Q, OUT_Q - spot.q);
#pragma unroll 1
  for (int p = first_row; p < smaller(TILE_P, OUT_P - spot.p); p += SHARERS)
#pragma unroll 1
    for (int q = 0; q < columns; ++q) {
      const float gradient = to_compute(dy[p * DY_ROW + DY_FRONT + q]);
      const element_t* const source = plane + (p + 2 * j) * PLANE_PITCH + q + g;
#pragma unroll
      for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int n = 0; n < N_TILES; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            sums[m][n][e] +=
                gradient * to_compute(source[(8 * n + e % 2) * PLANE_PITCH + 16 * m + 8 * (e / 2)]);
    }
}

// Adds a warp's sums to `own`, [tap][channel]; the first warp of a channel sets them instead.
device_inline void join(const Sums& sums, int channel, bool first, float* own) {
  const int lane = static_cast<int>(thread_x() % 32), g = lane / 4, j = lane % 4;
#pragma unroll
  for (int m = 0; m < M_TILES; ++m)
#pragma unroll
    for (int n = 0; n < N_TILES; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = 16 * m + g + 8 * (e / 2), row = 8 * n + 2 * j + e % 2;
        if (column >= TAPS_S || row >= TAPS_R) continue;
        const int r = STEP_H < 0 ? TAPS_R - 1 - row : row;
        const int s = STEP_W < 0 ? TAPS_S - 1 - column : column;
        float* const to = own + (r * TAPS_S + s) * OCTET + channel;
        *to = first ? sums[m][n][e] : *to + sums[m][n][e];
      }
}

KILN_KERNEL(wgrad_toeplitz_nhwc_mma, THREADS, 1, BoxedWgradParams, params) {
  unsigned char* const ring = shared_array<unsigned char, PLANES_AT>(0);
  element_t* const planes = shared_array<element_t, PLANES_BYTES / 2>(PLANES_AT);
  float* const own = shared_array<float, PLANES_BYTES / 4>(PLANES_AT);
  element_t* const dy = shared_array<element_t, DY_ELEMENTS>(DY_AT);
  Mbarrier* const landed = shared_array<Mbarrier, STAGES>(BARRIERS_AT);
  u32* const flag = shared_array<u32, 1>(FLAG_AT);  // x has an element that is not finite
  const TileShare share = share_of(params.common);
  const DepthwiseTile tile(share.tile);
  const int warp = static_cast<int>(thread_x() / 32), channel = warp % OCTET;
  const Boxes boxes{
      params, ring, landed, static_cast<u32>(share.first), static_cast<u32>(share.end), tile.out};
  if (thread_x() == 0) {
    for (int i = 0; i < STAGES; ++i) landed[i].init(1);
    mbarriers_are_made();
    prefetch_map(params.x);
    prefetch_map(params.dy);
    *flag = 0;
    for (u32 box = 0; box < STAGES; ++box) boxes.ask(box);
  }
#pragma unroll 1
  for (int i = thread_x(); i < DY_ELEMENTS / 2; i += THREADS) reinterpret_cast<u32*>(dy)[i] = 0;
  block_barrier();

  Sums sums = {};
  u32 box = 0;
#pragma unroll 1
  for (u32 unit = boxes.first; unit < boxes.end; ++unit) {
    u32 seen = 0;
#pragma unroll 1
    for (int i = 0; i < BOXES; ++i, ++box) {
      const u32* const from = boxes.wait(box);
      if (i < X_BOXES) {
        element_t* const to = planes + i * BOX_ROWS * PLANE_PITCH;
        seen |= lay_out<HALO_W, THREADS>(
            from, smaller(BOX_ROWS, HALO_H - i * BOX_ROWS),
            [&](int c, int row, int column, u32 pair) {
              *reinterpret_cast<u32*>(to + c * PLANE + row * PLANE_PITCH + column) = pair;
            });
        if (i == X_BOXES - 1 && seen != 0) *flag = 1;
      } else {
        const int first_row = (i - X_BOXES) * BOX_ROWS;
        lay_out<TILE_Q, THREADS>(
            from, smaller(BOX_ROWS, TILE_P - first_row), [&](int c, int row, int column, u32 pair) {
              element_t* const to =
                  dy + (c * TILE_P + first_row + row) * DY_ROW + DY_FRONT + column;
              *reinterpret_cast<u32*>(to) = pair;
              to[DY_PLACES - 1].bits = static_cast<unsigned short>(pair);
              to[DY_PLACES].bits = static_cast<unsigned short>(pair >> 16);
            });
      }
      block_barrier();  // all threads have read the box; after the last one operands are complete
      if (thread_x() == 0) boxes.ask(box + STAGES);
    }
    const element_t* const plane = planes + channel * PLANE;
    const element_t* const gradients = dy + channel * (TILE_P * DY_ROW);
    if (*flag == 0)
      multiply(plane, gradients, warp / OCTET, sums);
    else
      add_up(plane, gradients, warp / OCTET, BoxedSpot<TILE_P, TILE_Q>(unit), sums);
    block_barrier();  // all threads have read everything
    if (thread_x() == 0) *flag = 0;
  }
#pragma unroll 1
  for (int sharer = 0; sharer < SHARERS; ++sharer) {
    if (warp / OCTET == sharer) join(sums, channel, sharer == 0, own);
    block_barrier();
  }
  finish_tile<THREADS>(params.common, share, tile, own);
}
