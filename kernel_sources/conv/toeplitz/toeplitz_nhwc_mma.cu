// Depthwise forward convolution and data gradient of stride 1 in NHWC, for filters so long that
// tensor cores pay off although they also multiply zeros.
//
// A row of outputs is the sum, over the filter's rows, of the Toeplitz matrix of a row of weights
// times a row of the source. A block takes 8 channels (16 bytes), one for each warp, whose
// accumulators are 16 x COLUMN_TILES columns by 8 x ROW_TILES rows of pixels. Operand A is 16
// columns of pixels by 16 columns of the source; a row of weights reaches W_TILES such operands.
// They consist of 8 x 8 matrices that are constant along their diagonals, so a lane holds all of
// them in 2 * W_TILES + 1 words. Operand B is 16 columns of 8 rows of the source.
//
// Shared memory holds three things: the source's halo, channel by channel, as [row][column]; the
// weights as [channel][row][2][W_PLACES] with zeros around them, where the second copy is shifted
// by one element so that every pair begins at a word in one of the copies; and a ring of boxes,
// BOX_ROWS rows of 8 channels each, which TMA loads. Results pass through the halo's memory before
// they are stored.
//
// A zero that is not a weight must not multiply an infinity or NaN. So the threads that rearrange a
// halo check its elements, and a tile with one that is not finite is computed by its definition.
#include "common/compute_type.cuh"
#include "conv/geometry/boxed_gather_params.h"
#include "conv/geometry/boxed_spot.cuh"
#include "conv/geometry/phase_taps.cuh"
#include "conv/store/boxed_epilogue.cuh"
#include "conv/toeplitz/lay_out.cuh"
#include "target/bulk_copy.cuh"
#include "target/matrix_load.cuh"
#include "target/shared_memory.cuh"
#include "target/warp_product.cuh"

constexpr int THREADS = 32 * OCTET;
constexpr int BLOCK_P = 8 * ROW_TILES, BLOCK_Q = 16 * COLUMN_TILES;
constexpr int W_TILES = (TAPS_S + 14) / 16 + 1;
constexpr int HALO_TILES = (COLUMN_TILES + W_TILES) / 2 * 2;  // tiles of 16 columns, read in pairs
constexpr int HALO_W = 16 * HALO_TILES, HALO_H = BLOCK_P + TAPS_R - 1;
static_assert(HALO_TILES >= COLUMN_TILES + W_TILES - 1);
static_assert(CHANNELS == 1 && ROWS == 1 && PHASES == 1);

// Sizes in elements. The pitch of rows is an odd number of 16 bytes, so that rows begin in
// different banks.
constexpr int PLANE_PITCH = HALO_W + 8, PLANE = HALO_H * PLANE_PITCH;
constexpr int W_FRONT = 16, W_PLACES = 16 * W_TILES + W_FRONT, W_ROW = 2 * W_PLACES;
constexpr int BOX_ELEMENTS = BOX_ROWS * HALO_W * OCTET;
constexpr int BOXES = (HALO_H + BOX_ROWS - 1) / BOX_ROWS;  // boxes of a tile
// Results are [channel][row][column]; the pitch keeps two lanes that store at once in different
// banks.
constexpr int RESULT_PITCH = BLOCK_Q + 4, RESULTS = BLOCK_P * RESULT_PITCH;

device_inline constexpr int larger(int a, int b) { return a > b ? a : b; }
device_inline constexpr int smaller(int a, int b) { return a < b ? a : b; }
constexpr int BOX_BYTES = BOX_ELEMENTS * 2;
constexpr int PLANES_AT = STAGES * BOX_BYTES;
constexpr int PLANES_BYTES = larger(OCTET * PLANE * 2, OCTET* RESULTS * 4);
constexpr int WEIGHTS_AT = (PLANES_AT + PLANES_BYTES + 15) / 16 * 16;
constexpr int WEIGHTS = OCTET * TAPS_R * W_ROW;
constexpr int BARRIERS_AT = WEIGHTS_AT + (WEIGHTS * 2 + 15) / 16 * 16;
constexpr int FLAG_AT = BARRIERS_AT + (STAGES * 8 + 15) / 16 * 16;
static_assert(FLAG_AT + 16 <= SHARED_BYTES && BOX_BYTES % 128 == 0);

using Sums = float[ROW_TILES][COLUMN_TILES][4];

// The first pixel of a block's tile.
// Loads the boxes of a block's tiles through a ring, one after the other.
struct Boxes {
  const BoxedGatherParams& params;
  unsigned char* ring;
  Mbarrier* landed;
  u32 first, step;  // the block's first tile, and the step to its next one
  int channel;

  // Starts to load the block's box number `box`, if there is one.
  device_inline void ask(u32 box) const {
    const u32 turn = box / BOXES;
    const u32 tile = first + turn * step;
    if (tile >= params.common.tiles) return;
    const BoxedSpot<BLOCK_P, BLOCK_Q> spot(tile);
    constexpr int LOWER_H = ORIGIN_H[0] - (STEP_H < 0 ? TAPS_R - 1 : 0);
    constexpr int LOWER_W = ORIGIN_W[0] - (STEP_W < 0 ? TAPS_S - 1 : 0);
    const int at[4] = {channel, spot.q + LOWER_W,
                       spot.p + LOWER_H + static_cast<int>(box - turn * BOXES) * BOX_ROWS,
                       static_cast<int>(spot.image)};
    landed[box % STAGES].arrive_and_expect(BOX_BYTES);
    bulk_load(ring + box % STAGES * BOX_BYTES, params.source, landed[box % STAGES], at);
  }
  device_inline const u32* wait(u32 box) const {
    landed[box % STAGES].wait(box / STAGES & 1);
    return reinterpret_cast<const u32*>(ring + box % STAGES * BOX_BYTES);
  }
};

device_inline void load_weights(const GatherParams& params, int first_channel, element_t* weights) {
#pragma unroll 1
  for (int i = thread_x(); i < WEIGHTS / 2; i += THREADS) reinterpret_cast<u32*>(weights)[i] = 0;
  block_barrier();
  const element_t* const w = static_cast<const element_t*>(params.w) + W_FIRST[0];
#pragma unroll 4
  for (int i = thread_x(); i < OCTET * TAPS_R * TAPS_S; i += THREADS) {
    const int line = i / TAPS_S, column = i - line * TAPS_S;
    const int channel = line / TAPS_R, row = line - channel * TAPS_R;
    const int r = STEP_H < 0 ? TAPS_R - 1 - row : row;
    const int s = STEP_W < 0 ? TAPS_S - 1 - column : column;
    const element_t weight = w[static_cast<i64>(first_channel + channel) * W_STRIDE_GROUP +
                               static_cast<i64>(r) * W_STRIDE_R + static_cast<i64>(s) * W_STRIDE_S];
    element_t* const to = weights + line * W_ROW + W_FRONT + column;
    to[0] = weight;
    to[W_PLACES - 1] = weight;
  }
}

// Computes a tile by mma.sync. `plane` and `weights` are those of the warp's channel.
device_inline void multiply(const element_t* plane, const element_t* weights, Sums& sums) {
  const int lane = static_cast<int>(thread_x() % 32), g = lane / 4, j = lane % 4;
  // A lane's word of diagonal matrix d is the elements at 8d + 2j - g and after it, from the copy
  // of the weights in which they share a word.
  const element_t* const diagonal = weights + W_FRONT + 2 * j - g + (g % 2 != 0 ? W_PLACES - 1 : 0);
  const element_t* const source = plane + lane % 8 * PLANE_PITCH + lane / 8 * 8;
#pragma unroll 1
  for (int r = 0; r < TAPS_R; ++r) {
    u32 word[2 * W_TILES + 1];
#pragma unroll
    for (int d = -1; d < 2 * W_TILES; ++d)
      word[d + 1] = *reinterpret_cast<const u32*>(diagonal + r * W_ROW + 8 * d);
#pragma unroll
    for (int first = 0; first < ROW_TILES; first += 2) {
      constexpr int AT_ONCE = ROW_TILES > 1 ? 2 : 1;
      u32 right[AT_ONCE][HALO_TILES][2];
#pragma unroll
      for (int n = 0; n < AT_ONCE; ++n)
        if (first + n < ROW_TILES) {
#pragma unroll
          for (int k = 0; k < HALO_TILES; k += 2) {
            u32 both[4];
            load_matrices(both, source + ((first + n) * 8 + r) * PLANE_PITCH + 16 * k);
            right[n][k][0] = both[0], right[n][k][1] = both[1];
            right[n][k + 1][0] = both[2], right[n][k + 1][1] = both[3];
          }
        }
#pragma unroll
      for (int d = 0; d < W_TILES; ++d) {
        const u32 left[4] = {word[2 * d + 1], word[2 * d], word[2 * d + 2], word[2 * d + 1]};
#pragma unroll
        for (int m = 0; m < COLUMN_TILES; ++m)
#pragma unroll
          for (int n = 0; n < AT_ONCE; ++n)
            if (first + n < ROW_TILES)
              add_product<element_t>(sums[first + n][m], left, right[n][m + d]);
      }
    }
  }
}

// Computes a tile by its definition. A lane has the same `sums` as after products: (column g, rows
// 2j and 2j + 1) and (column g + 8, the same rows).
device_inline void add_up(const element_t* plane, const element_t* weights, Sums& sums) {
  const int lane = static_cast<int>(thread_x() % 32), g = lane / 4, j = lane % 4;
#pragma unroll 1
  for (int r = 0; r < TAPS_R; ++r)
#pragma unroll 1
    for (int s = 0; s < TAPS_S; ++s) {
      const float weight = to_compute(weights[r * W_ROW + W_FRONT + s]);
      const element_t* const source = plane + (2 * j + r) * PLANE_PITCH + g + s;
#pragma unroll
      for (int n = 0; n < ROW_TILES; ++n)
#pragma unroll
        for (int m = 0; m < COLUMN_TILES; ++m)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            sums[n][m][e] +=
                weight * to_compute(source[(8 * n + e % 2) * PLANE_PITCH + 16 * m + 8 * (e / 2)]);
    }
}

device_inline void stage(const Sums& sums, float* results) {
  const int lane = static_cast<int>(thread_x() % 32), g = lane / 4, j = lane % 4;
#pragma unroll
  for (int n = 0; n < ROW_TILES; ++n)
#pragma unroll
    for (int m = 0; m < COLUMN_TILES; ++m)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        results[(8 * n + 2 * j + e % 2) * RESULT_PITCH + 16 * m + g + 8 * (e / 2)] = sums[n][m][e];
}

device_inline void store(const Epilogue& epilogue, const compute_t (&bias)[OCTET],
                         const BoxedSpot<BLOCK_P, BLOCK_Q>& spot, int channel,
                         const float* results) {
  const int image = static_cast<int>(spot.image);  // which boxes count in 32 bits
#pragma unroll 2
  for (int i = thread_x(); i < BLOCK_P * BLOCK_Q; i += THREADS) {
    const int row = i / BLOCK_Q, column = i - row * BLOCK_Q;
    if (spot.p + row >= OUT_P[0] || spot.q + column >= OUT_Q[0]) continue;
    compute_t sums[OCTET];
#pragma unroll
    for (int c = 0; c < OCTET; ++c) sums[c] = results[c * RESULTS + row * RESULT_PITCH + column];
    epilogue.store_vector(static_cast<i64>(image) * OUT_STRIDE_N + channel +
                              static_cast<i64>(spot.p + row) * OUT_STRIDE_P +
                              static_cast<i64>(spot.q + column) * OUT_STRIDE_Q,
                          sums, bias);
  }
}

KILN_KERNEL(toeplitz_nhwc_mma, THREADS, 1, BoxedGatherParams, params) {
  unsigned char* const ring = shared_array<unsigned char, PLANES_AT>(0);
  element_t* const planes = shared_array<element_t, PLANES_BYTES / 2>(PLANES_AT);
  float* const results = shared_array<float, PLANES_BYTES / 4>(PLANES_AT);
  element_t* const weights = shared_array<element_t, WEIGHTS>(WEIGHTS_AT);
  Mbarrier* const landed = shared_array<Mbarrier, STAGES>(BARRIERS_AT);
  u32* const flag = shared_array<u32, 1>(FLAG_AT);  // the tile's halo has a NaN or infinity
  const int warp = static_cast<int>(thread_x() / 32);
  const int channel = static_cast<int>(block_x() % CHANNEL_TILES) * OCTET;
  const Boxes boxes{params, ring, landed, block_x() / CHANNEL_TILES, grid_x() / CHANNEL_TILES,
                    channel};
  if (thread_x() == 0) {
    for (int i = 0; i < STAGES; ++i) landed[i].init(1);
    mbarriers_are_made();
    prefetch_map(params.source);
    *flag = 0;
    for (u32 box = 0; box < STAGES; ++box) boxes.ask(box);
  }
  load_weights(params.common, channel, weights);
  block_barrier();

  const Epilogue epilogue = boxed_epilogue(params);
  u32 box = 0;
#pragma unroll 1
  for (u32 tile = boxes.first; tile < params.common.tiles; tile += boxes.step) {
    u32 seen = 0;
#pragma unroll 1
    for (int i = 0; i < BOXES; ++i, ++box) {
      element_t* const to = planes + i * BOX_ROWS * PLANE_PITCH;
      seen |= lay_out<HALO_W, THREADS>(
          boxes.wait(box), smaller(BOX_ROWS, HALO_H - i * BOX_ROWS),
          [&](int c, int row, int column, u32 pair) {
            *reinterpret_cast<u32*>(to + c * PLANE + row * PLANE_PITCH + column) = pair;
          });
      if (i == BOXES - 1 && seen != 0) *flag = 1;
      block_barrier();  // all threads have read the box; after the last one the halo is complete
      if (thread_x() == 0) boxes.ask(box + STAGES);
    }
    Sums sums = {};
    const element_t* const plane = planes + warp * PLANE;
    const element_t* const own = weights + warp * (TAPS_R * W_ROW);
    if (*flag == 0)
      multiply(plane, own, sums);
    else
      add_up(plane, own, sums);
    block_barrier();  // all threads have read the halo
    stage(sums, results + warp * RESULTS);
    if (thread_x() == 0) *flag = 0;
    block_barrier();
    compute_t bias[OCTET];
#pragma unroll
    for (int c = 0; c < OCTET; ++c) bias[c] = epilogue.bias_of(channel + c);
    store(epilogue, bias, BoxedSpot<BLOCK_P, BLOCK_Q>(tile), channel, results);
    block_barrier();  // all threads have read the results
  }
}
