// Forward convolution and data gradient in NHWC with one source channel per group: any number of
// channels, at any alignment, in one to three dimensions.
//
// A thread computes VECTOR channels, two or one, of TILE_P x TILE_Q pixels. It walks down the
// source rows that these read, straight from memory, and adds each row to every output row that
// uses it while the next one is under way. A complete output row is stored at once, so registers
// hold only about as many rows of sums as the filter has rows; with several planes of the filter,
// which are taken in turn, all rows are complete at the end. Neighbouring threads have neighbouring
// channels: a block takes pixels whole, or a large part of them, wherever in a sector of memory
// these begin. The filter is in shared memory as [plane][tap][channel of the output] in the compute
// type; with WEIGHTS_KEPT a thread has those of a plane in registers.
#include "common/magic.cuh"
#include "conv/direct/depthwise_filter.cuh"
#include "conv/direct/narrow_pixels.cuh"
#include "conv/geometry/spot.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/store/epilogue.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = LANES_C * RUNS;  // LANES_C vectors of channels by RUNS tiles of pixels
constexpr int BLOCK_CHANNELS = LANES_C * VECTOR;

// Channels of the source that a thread reads: those of its groups.
constexpr int INPUTS = ROWS == 1 ? VECTOR : 1;
static_assert(CHANNELS == 1 && (ROWS == 1 || ROWS % VECTOR == 0));

using Pixel = NarrowPixel<element_t, INPUTS>;
using Weights = Pack<compute_t, VECTOR>;

// A thread's first channel, and its tile's first pixel in the phase's output.
struct VolumeChannelSpot : Spot {
  int plane, channel;
};

device_inline VolumeChannelSpot channel_spot_of(u32 block) {
  const u32 channel_tile = block % CHANNEL_TILES;
  const u64 run = static_cast<u64>(block / CHANNEL_TILES) * RUNS + thread_x() / LANES_C;
  VolumeChannelSpot spot{spot_of<TILE_P, TILE_Q>(run), 0, 0};
  const u64 image = DIVIDE(DIV_PLANES, static_cast<u64>(spot.image));
  spot.plane = static_cast<int>(static_cast<u64>(spot.image) - image * DIV_PLANES);
  spot.image = static_cast<i64>(image);
  spot.channel = static_cast<int>(channel_tile * BLOCK_CHANNELS + thread_x() % LANES_C * VECTOR);
  return spot;
}

// The weights of a plane of the filter for a thread's channels, from registers or shared memory.
template <int TAPS>
struct PlaneFilter {
  Weights kept[WEIGHTS_KEPT && TAPS > 0 ? TAPS : 1];
  const compute_t* shared;  // at the thread's channels

  device_inline explicit PlaneFilter(const compute_t* at) : shared(at) {
    if constexpr (WEIGHTS_KEPT) {
#pragma unroll
      for (int tap = 0; tap < TAPS; ++tap) kept[tap] = read(tap);
    }
  }
  device_inline Weights read(int tap) const {
    return *reinterpret_cast<const Weights*>(shared + tap * BLOCK_CHANNELS);
  }
  device_inline Weights of(int tap) const { return WEIGHTS_KEPT ? kept[tap] : read(tap); }
};

// What becomes of a thread's sums.
template <int PHASE>
class Results {
 public:
  device_inline Results(const GatherParams& params, const VolumeChannelSpot& spot)
      : spot_(spot),
        at_(OUT_FIRST[PHASE] + spot.image * OUT_STRIDE_N + spot.channel +
            static_cast<i64>(spot.plane) * OUT_STRIDE_O + static_cast<i64>(spot.p) * OUT_STRIDE_P +
            static_cast<i64>(spot.q) * OUT_STRIDE_Q) {
    epilogue_.out = static_cast<output_t*>(params.out);
    epilogue_.z = static_cast<const output_t*>(params.z);
    epilogue_.bias = static_cast<const output_t*>(params.bias);
    epilogue_.alpha = static_cast<compute_t>(params.alpha);
    epilogue_.beta = static_cast<compute_t>(params.beta);
    epilogue_.coef = coefficients_of<compute_t>(params);
#pragma unroll
    for (int c = 0; c < VECTOR; ++c) bias_[c] = epilogue_.bias_of(spot.channel + c);
  }
  // Row i of the tile.
  device_inline void store(int i, const compute_t (&sums)[TILE_Q][VECTOR]) const {
    if (OUT_P[PHASE] % TILE_P != 0 && spot_.p + i >= OUT_P[PHASE]) return;
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j)
      if (OUT_Q[PHASE] % TILE_Q == 0 || spot_.q + j < OUT_Q[PHASE])
        epilogue_.store_vector(
            at_ + (static_cast<i64>(i) * OUT_STRIDE_P + static_cast<i64>(j) * OUT_STRIDE_Q),
            sums[j], bias_);
  }

 private:
  const VolumeChannelSpot& spot_;
  i64 at_;
  Epilogue epilogue_;
  compute_t bias_[VECTOR];
};

using Sums = compute_t[TILE_P][TILE_Q][VECTOR];

// Adds a plane's products. Stores each row of results that is complete, with `stores`.
template <int PHASE, bool STORES>
device_inline void add_plane(const element_t* source, int h0, int w0, const compute_t* weights,
                             const Results<PHASE>& results, Sums& sums) {
  constexpr int TAPS_R = FILTER_R[PHASE], TAPS_S = FILTER_S[PHASE];
  // The source rows and columns that the tile reads.
  constexpr int ROWS_MET = (TILE_P - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1;
  constexpr int COLUMNS_MET = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
  const PlaneFilter<TAPS_R * TAPS_S> filter(weights);
  const auto read = [&](int y, Pixel(&row)[COLUMNS_MET]) {
    read_row<SOURCE_W, SOURCE_STRIDE_W>(source + static_cast<i64>(y) * SOURCE_STRIDE_H,
                                        static_cast<u32>(h0 + y) < static_cast<u32>(SOURCE_H), w0,
                                        row);
  };
  Pixel rows[2][COLUMNS_MET];
  read(0, rows[0]);
#pragma unroll
  for (int y = 0; y < ROWS_MET; ++y) {
    if (y + 1 < ROWS_MET) read(y + 1, rows[(y + 1) % 2]);
#pragma unroll
    for (int i = 0; i < TILE_P; ++i) {
      const int from = y - i * STRIDE_H;
      if (from < 0 || from % DISTANCE_H != 0 || from / DISTANCE_H >= TAPS_R) continue;
      const int r = from / DISTANCE_H;
#pragma unroll
      for (int s = 0; s < TAPS_S; ++s) {
        const Weights weight = filter.of(r * TAPS_S + s);
#pragma unroll
        for (int j = 0; j < TILE_Q; ++j)
#pragma unroll
          for (int c = 0; c < VECTOR; ++c)
            sums[i][j][c] += rows[y % 2][j * STRIDE_W + s * DISTANCE_W].of(INPUTS == 1 ? 0 : c) *
                             weight.element[c];
      }
      if (STORES && r == TAPS_R - 1) results.store(i, sums[i]);
    }
  }
}

template <int PHASE>
device_inline void compute(const GatherParams& params, const VolumeChannelSpot& spot,
                           const compute_t* filter) {
  constexpr int TAPS_T = FILTER_T[PHASE], TAPS_R = FILTER_R[PHASE], TAPS_S = FILTER_S[PHASE];
  constexpr bool TAPS = TAPS_T > 0 && TAPS_R > 0 && TAPS_S > 0;
  constexpr bool ONE_PLANE = TAPS && TAPS_T == 1 && !PADDED_D;
  const Results<PHASE> results(params, spot);
  Sums sums = {};
  if constexpr (TAPS) {
    const int h0 =
        spot.p * STRIDE_H + ORIGIN_H[PHASE] - (STEP_H < 0 ? (TAPS_R - 1) * DISTANCE_H : 0);
    const int w0 =
        spot.q * STRIDE_W + ORIGIN_W[PHASE] - (STEP_W < 0 ? (TAPS_S - 1) * DISTANCE_W : 0);
    const element_t* const source = static_cast<const element_t*>(params.source) +
                                    spot.image * SOURCE_STRIDE_N + spot.channel / ROWS +
                                    static_cast<i64>(h0) * SOURCE_STRIDE_H +
                                    static_cast<i64>(w0) * SOURCE_STRIDE_W;
    const compute_t* const weights = filter + thread_x() % LANES_C * VECTOR;
#pragma unroll 1
    for (int t = 0; t < TAPS_T; ++t) {
      const int d = spot.plane * STRIDE_D + ORIGIN_D[PHASE] + t * STEP_D;
      if (PADDED_D && static_cast<u32>(d) >= static_cast<u32>(SOURCE_D)) continue;
      add_plane<PHASE, ONE_PLANE>(source + static_cast<i64>(d) * SOURCE_STRIDE_D, h0, w0,
                                  weights + t * (TAPS_R * TAPS_S * BLOCK_CHANNELS), results, sums);
    }
  }
  if constexpr (!ONE_PLANE) {
#pragma unroll
    for (int i = 0; i < TILE_P; ++i) results.store(i, sums[i]);
  }
}

// Loads the block's part of the filter, plane by plane.
template <int PHASE>
device_inline void load_planes(const GatherParams& params, int first_channel, compute_t* filter) {
  constexpr int PLANE = FILTER_R[PHASE] * FILTER_S[PHASE] * BLOCK_CHANNELS;
#pragma unroll 1
  for (int t = 0; t < FILTER_T[PHASE]; ++t) {
    GatherParams plane = params;
    plane.w = static_cast<const element_t*>(params.w) + static_cast<i64>(t) * W_STRIDE_T;
    load_filter<PHASE, BLOCK_CHANNELS, THREADS>(plane, first_channel, filter + t * PLANE);
  }
}

template <int PHASE>
device_inline void run_phase(const GatherParams& params, u32 block, u32 phase, compute_t* filter) {
  if (phase == PHASE) {
    const VolumeChannelSpot spot = channel_spot_of(block);
    load_planes<PHASE>(params, spot.channel - static_cast<int>(thread_x() % LANES_C) * VECTOR,
                       filter);
    block_barrier();
    if (spot.image < params.images && spot.channel < GROUPS * ROWS && spot.plane < OUT_O[PHASE] &&
        spot.p < OUT_P[PHASE] && spot.q < OUT_Q[PHASE])
      compute<PHASE>(params, spot, filter);
    return;
  }
  if constexpr (PHASE + 1 < PHASES) run_phase<PHASE + 1>(params, block, phase, filter);
}

KILN_KERNEL(depthwise_rows_nhwc_fma, THREADS, MIN_BLOCKS, GatherParams, params) {
  compute_t* const filter = shared_array<compute_t, MOST_TAPS * BLOCK_CHANNELS>(0);
  // The phases of a tile are blocks beside each other: their pixels alternate in the output, and
  // where channels end within a sector of memory, pixels of several phases share it. Written at
  // different times, such sectors leave the L2 cache half filled.
  run_phase<0>(params, block_x() / PHASES, block_x() % PHASES, filter);
}
