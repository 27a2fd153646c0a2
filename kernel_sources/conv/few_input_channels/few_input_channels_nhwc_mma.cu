// Forward convolution of channels-last tensors of 16 bits from few channels, and the data gradient
// of a layer that makes few, on the tensor cores.
//
// A block takes tiles of TILE_P x TILE_Q pixels by BLOCK_CHANNELS output channels in turn. A tile's
// halo, as rows of the source, is loaded into shared memory while previous tiles are multiplied.
// The filter stays in shared memory for all tiles, in the order of the fragments. The reduction
// runs over the source elements under a pixel's taps, (plane, row, column, channel); each is read
// by its own offset, so no zeros are multiplied, except for those that fill up the last step.
//
// A warp computes 32 pixels, the rows of its products, by OCTETS octets (8 channels, 16 bytes).
#include "common/magic.cuh"
#include "conv/geometry/gather_params.h"
#include "conv/geometry/lanes.cuh"
#include "conv/geometry/phase_taps.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/geometry/volume_spot.cuh"
#include "conv/load/whole_rows.cuh"
#include "conv/store/epilogue.cuh"
#include "target/shared_memory.cuh"
#include "target/warp_product.cuh"

constexpr int THREADS = 32 * WARPS_P * WARPS_N;
constexpr int TAPS_T = FILTER_T[0];
constexpr int HEIGHT = (TILE_P - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1,
              WIDTH = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
constexpr int LOWER_H = ORIGIN_H[0] - (STEP_H < 0 ? (TAPS_R - 1) * DISTANCE_H : 0),
              LOWER_W = ORIGIN_W[0] - (STEP_W < 0 ? (TAPS_S - 1) * DISTANCE_W : 0);
// UNEVEN_ROWS: a tile begins at any of COPY elements (tile_shift()).
constexpr int COPY = COPY_BYTES / 2;
constexpr int SHIFT = UNEVEN_ROWS ? 0 : elements_before<COPY_BYTES>(LOWER_W, CHANNELS);
constexpr int COPIES = row_copies<COPY_BYTES>(UNEVEN_ROWS ? COPY - 1 : SHIFT, WIDTH* CHANNELS);
constexpr int PLANE_BYTES = HEIGHT * PITCH;
constexpr int STAGE_BYTES =
    UNEVEN_ROWS ? (PLANE_BYTES + 2 * (COPY - 1) + 15) / 16 * 16 : TAPS_T * PLANE_BYTES;
// The reduction is ordered as in memory, so that neighboring lanes read neighboring elements.
constexpr int RUN = TAPS_S * CHANNELS, REDUCTION = TAPS_T * TAPS_R * RUN;
constexpr int STEPS = (REDUCTION + 15) / 16;
constexpr int BLOCK_CHANNELS = WARPS_N * OCTETS * 8;
constexpr int GROUPS_Q = TILE_Q / 16;
static_assert(TILE_Q % 16 == 0 && TILE_P * TILE_Q == 32 * WARPS_P && OCTETS % WARP_OCTETS == 0);

struct alignas(8) RightOperand {
  u32 word[2];
};
// The offsets of a lane's four elements of a step from a pixel's first element, in bytes.
struct alignas(8) Places {
  unsigned short at[4];
};
constexpr int FILTER_AT = STAGES * STAGE_BYTES;
constexpr int PLACES_AT =
    FILTER_AT + STEPS * (BLOCK_CHANNELS / 8) * 32 * static_cast<int>(sizeof(RightOperand));
static_assert(PLACES_AT + STEPS * 4 * static_cast<int>(sizeof(Places)) <= SHARED_BYTES);
static_assert(STAGE_BYTES <= 65536 && STAGE_BYTES % 16 == 0);
static_assert(!UNEVEN_ROWS || (TAPS_T == 1 && (PITCH / 2 - SOURCE_STRIDE_H) % COPY == 0));

// Element k of the reduction: its plane, row and column of taps and its channel, in the order of
// memory.
struct Element {
  int plane, row, column, channel;
  device_inline explicit Element(int k) {
    const int run = k / RUN, in_run = k - run * RUN;
    plane = run / TAPS_R, row = run - plane * TAPS_R;
    column = in_run / CHANNELS, channel = in_run - column * CHANNELS;
  }
  device_inline int place() const {
    return plane * PLANE_BYTES + row * (DISTANCE_H * PITCH) +
           (SHIFT + column * (DISTANCE_W * CHANNELS) + channel) * 2;
  }
  device_inline i64 in_filter() const {
    const int r = STEP_H < 0 ? TAPS_R - 1 - row : row;
    const int s = STEP_W < 0 ? TAPS_S - 1 - column : column;
    return static_cast<i64>(channel) * W_STRIDE_C + static_cast<i64>(plane) * W_STRIDE_T +
           static_cast<i64>(r) * W_STRIDE_R + static_cast<i64>(s) * W_STRIDE_S;
  }
};

// UNEVEN_ROWS: the number of elements from where a tile's first copy begins to its first element.
device_inline int tile_shift(const VolumeSpot& spot) {
  if constexpr (!UNEVEN_ROWS) return 0;
  const i64 first = spot.image * SOURCE_STRIDE_N +
                    static_cast<i64>(spot.o * STRIDE_D + ORIGIN_D[0]) * SOURCE_STRIDE_D +
                    static_cast<i64>(spot.p * STRIDE_H + LOWER_H) * SOURCE_STRIDE_H +
                    (spot.q * STRIDE_W + LOWER_W) * CHANNELS;
  return static_cast<int>(static_cast<u32>(first) % COPY);
}

// Starts copying a tile's halo.
device_inline void load_stage(const GatherParams& params, u64 tile, unsigned char* stage) {
  const VolumeSpot spot = volume_spot_of<TILE_P, TILE_Q>(tile);
#pragma unroll
  for (int t = 0; t < TAPS_T; ++t) {
    const int d = spot.o * STRIDE_D + ORIGIN_D[0] + t * STEP_D;
    const element_t* const plane = static_cast<const element_t*>(params.source) +
                                   spot.image * SOURCE_STRIDE_N +
                                   static_cast<i64>(d) * SOURCE_STRIDE_D;
    const int row = spot.p * STRIDE_H + LOWER_H,
              first = (spot.q * STRIDE_W + LOWER_W) * CHANNELS - SHIFT;
    const bool exists = static_cast<u32>(d) < static_cast<u32>(SOURCE_D);
    if constexpr (UNEVEN_ROWS)
      copy_uneven_rows<THREADS, HEIGHT, COPIES, PITCH, SOURCE_W * CHANNELS>(
          stage, plane, SOURCE_STRIDE_H, row, SOURCE_H, first, tile_shift(spot), exists);
    else
      copy_whole_rows<THREADS, HEIGHT, COPIES, PITCH, COPY_BYTES, SOURCE_W * CHANNELS>(
          stage + t * PLANE_BYTES, plane, SOURCE_STRIDE_H, row, SOURCE_H, first, exists);
  }
}

device_inline u32 filter_bits(const element_t* w, int channel, int k) {
  if (channel >= ROWS || k >= REDUCTION) return 0;
  return w[static_cast<i64>(channel) * W_STRIDE_ROW + Element(k).in_filter()].bits;
}

// Fills the tables: operands B as [step][octet of the block][lane], and offsets as [step][lane of
// four].
device_inline void fill_tables(const GatherParams& params, int first_channel,
                               unsigned char* shared) {
  const element_t* const w = static_cast<const element_t*>(params.w) + W_FIRST[0];
  u32* const filter = reinterpret_cast<u32*>(shared + FILTER_AT);
  constexpr int WORDS = STEPS * (BLOCK_CHANNELS / 8) * 64;
  static_assert(WORDS % THREADS == 0);
  // Several words at a time, because each waits for L2.
#pragma unroll 8
  for (int round = 0; round < WORDS / THREADS; ++round) {
    const int i = round * THREADS + thread_x();
    const int word = i % 2, lane = i / 2 % 32, octet = i / 64 % (BLOCK_CHANNELS / 8);
    const int channel = first_channel + octet * 8 + lane / 4;
    const int k = i / (BLOCK_CHANNELS * 8) * 16 + word * 8 + lane % 4 * 2;
    filter[i] = filter_bits(w, channel, k) | filter_bits(w, channel, k + 1) << 16;
  }
  Places* const places = reinterpret_cast<Places*>(shared + PLACES_AT);
#pragma unroll 1
  for (int i = thread_x(); i < STEPS * 16; i += THREADS) {
    const int part = i % 4, k = i / 16 * 16 + part / 2 * 8 + i / 4 % 4 * 2 + part % 2;
    places[i / 4].at[part] = static_cast<unsigned short>(k < REDUCTION ? Element(k).place() : 0);
  }
}

using Sums = float[2][OCTETS][4];

// Adds the products of 32 pixels. pixels: the addresses of the lane's first pixel in both operands
// A; tail: masks the elements of the last step that exist.
device_inline void multiply(Sums& sums, const unsigned char* const (&pixels)[2],
                            const RightOperand* filter, const Places* places,
                            const u32 (&tail)[2]) {
  constexpr int PIXEL = STRIDE_W * CHANNELS * 2;
#pragma unroll 2
  for (int step = 0; step < STEPS; ++step) {
    const Places at = places[step * 4];
    const bool last = REDUCTION % 16 != 0 && step + 1 == STEPS;
    u32 left[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const unsigned char* const from = pixels[i] + word % 2 * (8 * PIXEL);
        left[i][word] = pack_shorts(short_at(from + at.at[word / 2 * 2]),
                                    short_at(from + at.at[word / 2 * 2 + 1]));
        if (last) left[i][word] &= tail[word / 2];
      }
#pragma unroll
    for (int octet = 0; octet < OCTETS; ++octet) {
      const RightOperand right = filter[(step * (BLOCK_CHANNELS / 8) + octet) * 32];
#pragma unroll
      for (int i = 0; i < 2; ++i) add_product<element_t>(sums[i][octet], left[i], right.word);
    }
  }
}

device_inline void store(const Sums& sums, const GatherParams& params, const VolumeSpot& spot,
                         int first_group, int first_channel) {
  const int lane = static_cast<int>(thread_x() % 32);
  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out);
  epilogue.z = static_cast<const output_t*>(params.z);
  epilogue.bias = static_cast<const output_t*>(params.bias);
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
  const i64 first =
      OUT_FIRST[0] + spot.image * OUT_STRIDE_N + static_cast<i64>(spot.o) * OUT_STRIDE_O;
#pragma unroll
  for (int part = 0; part < OCTETS; part += WARP_OCTETS) {
    const int channel = first_channel + (part + lane % 4) * 8;
    const bool exists = channel < ROWS;
    float bias[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) bias[c] = exists ? epilogue.bias_of(channel + c) : 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float mine[WARP_OCTETS][4], octets[2][8];
#pragma unroll
      for (int octet = 0; octet < WARP_OCTETS; ++octet)
#pragma unroll
        for (int c = 0; c < 4; ++c) mine[octet][c] = sums[i][part + octet][c];
      exchange_octets(octets, mine);
      const int p = spot.p + (first_group + i) / GROUPS_Q;
      const int q = spot.q + (first_group + i) % GROUPS_Q * 16 + lane / 4;
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (exists && p < OUT_P[0] && q + 8 * half < OUT_Q[0])
          epilogue.store_vector(first + channel + static_cast<i64>(p) * OUT_STRIDE_P +
                                    static_cast<i64>(q + 8 * half) * OUT_STRIDE_Q,
                                octets[half], bias);
    }
  }
}

// Block numbers count tiles of channels fastest, then slots, which take tiles of pixels in turn.
KILN_KERNEL(few_input_channels_nhwc_mma, THREADS, MIN_BLOCKS, GatherParams, params) {
  unsigned char* const shared = shared_array<unsigned char, SHARED_BYTES>(0);
  const int block_channel = static_cast<int>(block_x() % CHANNEL_TILES) * BLOCK_CHANNELS;
  const u64 slots = grid_x() / CHANNEL_TILES, tiles = static_cast<u64>(params.tiles);
  u64 next = block_x() / CHANNEL_TILES;
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) {
    if (next + i * slots < tiles) load_stage(params, next + i * slots, shared + i * STAGE_BYTES);
    async_commit();
  }
  fill_tables(params, block_channel, shared);

  const int lane = static_cast<int>(thread_x() % 32), warp = static_cast<int>(thread_x() / 32);
  const int first_group = warp % WARPS_P * 2, first_octet = warp / WARPS_P * OCTETS;
  int pixels[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int group = first_group + i;
    pixels[i] = group / GROUPS_Q * (STRIDE_H * PITCH) +
                (group % GROUPS_Q * 16 + lane / 4) * (STRIDE_W * CHANNELS * 2);
  }
  u32 tail[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int k = (STEPS - 1) * 16 + half * 8 + lane % 4 * 2;
    tail[half] = (k < REDUCTION ? 0xffffu : 0) | (k + 1 < REDUCTION ? 0xffff0000u : 0);
  }
  const RightOperand* const filter =
      reinterpret_cast<const RightOperand*>(shared + FILTER_AT) + first_octet * 32 + lane;
  const Places* const places = reinterpret_cast<const Places*>(shared + PLACES_AT) + lane % 4;

  int at = 0, free = (STAGES - 1) * STAGE_BYTES;
#pragma unroll 1
  for (u64 tile = next; tile < tiles; tile += slots) {
    async_wait<STAGES - 2>();
    block_barrier();  // the stage has landed, and no thread still reads the previous one
    if (tile + (STAGES - 1) * slots < tiles)
      load_stage(params, tile + (STAGES - 1) * slots, shared + free);
    async_commit();
    const VolumeSpot spot = volume_spot_of<TILE_P, TILE_Q>(tile);
    const unsigned char* const stage = shared + at + tile_shift(spot) * 2;
    const unsigned char* const from[2] = {stage + pixels[0], stage + pixels[1]};
    Sums sums = {};
    multiply(sums, from, filter, places, tail);
    store(sums, params, spot, from_here(first_group), block_channel + first_octet * 8);
    free = at;
    at = at + STAGE_BYTES == FILTER_AT ? 0 : at + STAGE_BYTES;
  }
}
