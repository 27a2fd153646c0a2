// Filter gradient of channels-first tensors with one or few channels per group. Every thread has,
// in registers, sums for all taps of FILTER_ROWS rows of the filter.
//
// A block has one channel of dy and one channel of x in its group. It takes tiles of TILE_P rows by
// RUNS runs of RUN pixels in turn; if images are small, UNITS of them at a time, with one tile
// each. The part of x that a tile reads is copied to shared memory while the previous tile is
// multiplied; dy goes straight to registers. A thread takes a run of dy, reads the elements of a
// row of x that belong to it once, and multiplies them for every tap. At the end warps, blocks and
// clusters add up their sums, always in the same order.
//
// A row of x lies in units of UNIT elements, of which threads beside each other read every
// LANE_UNITS-th at once; those are neighbours, and so are rows that are STRIDE_H apart, so that a
// warp's reads meet in few banks.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/geometry/volume_spot.cuh"
#include "conv/store/depthwise_wgrad_sum.cuh"
#include "target/async_copy.cuh"

constexpr int WORKERS = UNITS * TILE_P * RUNS, THREADS = (WORKERS + 31) / 32 * 32;
constexpr int PATCH_H = (TILE_P - 1) * STRIDE_H + (FILTER_ROWS - 1) * DISTANCE_H + 1;
constexpr int ROWS_BESIDE = (PATCH_H + STRIDE_H - 1) / STRIDE_H;
// The place of a row, and of an element of it, in a tile's part of x. PITCH: from a row to its
// neighbour; PLANE: from the units that threads read first to those that they read next.
device_inline constexpr int row_place(int row) {
  return (row % STRIDE_H * ROWS_BESIDE + row / STRIDE_H) * PITCH;
}
device_inline constexpr int element_place(int element) {
  const int unit = element / UNIT;
  return unit % LANE_UNITS * PLANE + unit / LANE_UNITS * UNIT + element % UNIT;
}
constexpr int PATCH = LANE_UNITS * PLANE, STAGE = UNITS * PATCH;  // elements
static_assert(PLANE >= STRIDE_H * ROWS_BESIDE * PITCH && PITCH * LANE_UNITS >= PATCH_W);
static_assert(UNIT % READ == 0 && UNIT % PACK == 0 && PITCH % UNIT == 0 && PLANE % UNIT == 0);
constexpr int OWN_AT = (2 * STAGE * static_cast<int>(sizeof(element_t)) + 15) / 16 * 16;
constexpr int EXCHANGE_AT =
    (OWN_AT + TILE_TAPS * static_cast<int>(sizeof(compute_t)) + 15) / 16 * 16;
static_assert(CHANNELS == 1 && BLOCK_ROWS == 1 && PATCH_W % PACK == 0);
static_assert(EXCHANGE_AT + THREADS / 32 * TILE_TAPS * sizeof(compute_t) <= SHARED_BYTES);

// The first pixel of dy of a unit.
device_inline VolumeSpot spot_of(u64 unit) {
  if constexpr (IMAGES) return {static_cast<i64>(unit), 0, 0, 0};
  return volume_spot_of<TILE_P, RUNS * RUN>(unit);
}

// Copies COUNT elements of x, which are aligned to their total size, or writes zeros if they do not
// exist.
template <int COUNT>
device_inline void copy(element_t* to, const element_t* from, bool exist) {
  constexpr int BYTES = COUNT * static_cast<int>(sizeof(element_t));
  if constexpr (BYTES >= 4) {
    async_copy<BYTES>(to, from, exist);
  } else {
    element_t element = {};
    if (exist) element = *from;
    *to = element;
  }
}

// Starts to copy the parts of x that units from `first` on read.
device_inline void load_stage(const DepthwiseWgradParams& params, u64 first, u64 end,
                              const DepthwiseTile& tile, element_t* stage) {
  constexpr int COPIES = PATCH_W / PACK;
  const int lowest = STEP_H < 0 ? TAPS_R - tile.row - FILTER_ROWS : tile.row;
  const element_t* const x =
      static_cast<const element_t*>(params.x) +
      (static_cast<i64>(tile.out / ROWS) * GROUP_CHANNELS + tile.in) * SOURCE_STRIDE_C;
#pragma unroll 1
  for (int i = thread_x(); i < UNITS * PATCH_H * COPIES; i += THREADS) {
    const int line = i / COPIES, column = (i - line * COPIES) * PACK;
    const int number = UNITS == 1 ? 0 : line / PATCH_H, row = line - number * PATCH_H;
    const u64 unit = first + static_cast<u64>(number);
    const VolumeSpot spot = spot_of(unit);
    const int d = spot.o * STRIDE_D + ORIGIN_D + tile.plane * STEP_D;
    const int h = spot.p * STRIDE_H + LOWER_H + lowest * DISTANCE_H + row;
    const int w = spot.q * STRIDE_W + LOWER_W - SHIFT + column;
    const bool exist = unit < end && static_cast<u32>(d) < static_cast<u32>(SOURCE_D) &&
                       static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                       static_cast<u32>(w) < static_cast<u32>(SOURCE_W);
    copy<PACK>(stage + number * PATCH + row_place(row) + element_place(column),
               x + (spot.image * SOURCE_STRIDE_N + static_cast<i64>(d) * SOURCE_STRIDE_D +
                    static_cast<i64>(h) * SOURCE_STRIDE_H + w),
               exist);
  }
}

using Sums = compute_t[FILTER_ROWS][TAPS_S];

// A thread's unit and first pixel in the block's tiles; works: whether it has any.
struct Place {
  int unit, p, q;
  bool works;
  device_inline Place() {
    const int number = static_cast<int>(thread_x());
    const int row = number / RUNS;
    q = (number - row * RUNS) * RUN;
    unit = row / TILE_P, p = row - unit * TILE_P;
    works = number < WORKERS;
  }
};

// Loads the thread's pixels of dy in a tile. Returns whether there are any; `left` is the number of
// pixels up to the end of the row.
device_inline bool load_run(const DepthwiseWgradParams& params, u64 unit, u64 end, int channel,
                            const Place& place, compute_t (&run)[RUN], int& left) {
  const VolumeSpot spot = spot_of(unit);
  const int p = spot.p + place.p, q = spot.q + place.q;
  left = OUT_Q - q;
  if (!place.works || unit >= end || p >= OUT_P || left <= 0) return false;
  const element_t* const dy = static_cast<const element_t*>(params.dy) + spot.image * OUT_STRIDE_N +
                              static_cast<i64>(channel) * OUT_STRIDE_ROW +
                              static_cast<i64>(spot.o) * OUT_STRIDE_O +
                              static_cast<i64>(p) * OUT_STRIDE_P + q;
#pragma unroll
  for (int j = 0; j < RUN; j += DY_PACK) {
    Pack<element_t, DY_PACK> pack = {};
    if (OUT_Q % RUN == 0 || j < left)
      pack = *reinterpret_cast<const Pack<element_t, DY_PACK>*>(dy + j);
#pragma unroll
    for (int k = 0; k < DY_PACK; ++k) run[j + k] = to_compute(pack.element[k]);
  }
  return true;
}

// Adds the products of a run. patch points to the first element of x that belongs to the run.
device_inline void multiply(Sums& sums, const element_t* patch, const compute_t (&run)[RUN],
                            int left) {
#pragma unroll
  for (int row = 0; row < FILTER_ROWS; ++row) {
    compute_t values[THREAD_ROW];
#pragma unroll
    for (int i = 0; i < THREAD_ROW; i += READ) {
      const auto pack = *reinterpret_cast<const Pack<element_t, READ>*>(
          patch + row_place(row * DISTANCE_H) + element_place(i));
#pragma unroll
      for (int k = 0; k < READ; ++k) values[i + k] = to_compute(pack.element[k]);
    }
    const int r = STEP_H < 0 ? FILTER_ROWS - 1 - row : row;
#pragma unroll
    for (int j = 0; j < RUN; ++j) {
      // Elements of x past the row's end may be infinite, and must not be multiplied.
      if (OUT_Q % RUN != 0 && j >= left) continue;
#pragma unroll
      for (int s = 0; s < TAPS_S; ++s)
        sums[r][s] +=
            run[j] * values[SHIFT + j * STRIDE_W + (STEP_W < 0 ? TAPS_S - 1 - s : s) * DISTANCE_W];
    }
  }
}

// Adds up the block's sums over its lanes and then its warps, in a fixed order.
device_inline void add_up_block(const Sums& sums, compute_t* exchange, compute_t* own) {
  const int lane = static_cast<int>(thread_x() % 32), warp = static_cast<int>(thread_x() / 32);
#pragma unroll
  for (int tap = 0; tap < TILE_TAPS; ++tap) {
    compute_t sum = sums[tap / TAPS_S][tap % TAPS_S];
#pragma unroll
    for (u32 mask = 16; mask > 0; mask /= 2) sum += warp_shuffle_xor(sum, mask);
    if (lane == 0) exchange[warp * TILE_TAPS + tap] = sum;
  }
  block_barrier();
#pragma unroll 1
  for (int tap = thread_x(); tap < TILE_TAPS; tap += THREADS) {
    compute_t total = exchange[tap];
#pragma unroll
    for (int other = 1; other < THREADS / 32; ++other) total += exchange[other * TILE_TAPS + tap];
    own[tap] = total;
  }
}

KILN_KERNEL(wgrad_depthwise_fma, THREADS, MIN_BLOCKS, DepthwiseWgradParams, params) {
  element_t* const stages = shared_array<element_t, 2 * STAGE>(0);
  compute_t* const own = shared_array<compute_t, TILE_TAPS>(OWN_AT);
  compute_t* const exchange = shared_array<compute_t, THREADS / 32 * TILE_TAPS>(EXCHANGE_AT);
  const TileShare share = share_of(params);
  const DepthwiseTile tile(share.tile);
  const Place place;

  Sums sums;
#pragma unroll
  for (int r = 0; r < FILTER_ROWS; ++r)
#pragma unroll
    for (int s = 0; s < TAPS_S; ++s) sums[r][s] = 0;
  if (share.first < share.end) load_stage(params, share.first, share.end, tile, stages);
  async_commit();
  int slot = 0;
#pragma unroll 1
  for (u64 unit = share.first; unit < share.end; unit += UNITS, slot ^= 1) {
    compute_t run[RUN];
    int left;
    const bool any = load_run(params, unit + static_cast<u64>(place.unit), share.end, tile.out,
                              place, run, left);
    async_wait<0>();
    block_barrier();  // the stage has landed, and all threads have read the other one
    if (unit + UNITS < share.end)
      load_stage(params, unit + UNITS, share.end, tile, stages + (slot ^ 1) * STAGE);
    async_commit();
    if (any)
      multiply(sums,
               stages + slot * STAGE + place.unit * PATCH + place.p * PITCH +
                   place.q * STRIDE_W / LANE_UNITS,
               run, left);
  }
  async_wait<0>();
  add_up_block(sums, exchange, own);
  finish_tile<THREADS>(params, share, tile, own);
}
