// Forward convolution and data gradient in NHWC with few channels per group. There is little
// arithmetic per byte, so the aim is to read the source once.
//
// A thread computes VECTOR channels, 16 bytes, of TILE_P x TILE_Q pixels. It walks down the source
// rows that these read, loads the INPUTS channels of its groups of each pixel once into registers,
// and adds them to every output row that uses them. Neighbouring threads have neighbouring
// channels, so that a warp accesses whole lines. The filter is in shared memory as [tap][channel of
// the source, in its group][channel of the output] in the compute type.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "conv/direct/depthwise_filter.cuh"
#include "conv/geometry/spot.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/store/epilogue.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = LANES_C * RUNS;  // LANES_C vectors of channels by RUNS tiles of pixels
constexpr int BLOCK_CHANNELS = LANES_C * VECTOR;

// The groups of a thread's output channels have INPUTS source channels in total, which are read
// ACCESS at a time.
constexpr int THREAD_GROUPS = ROWS < VECTOR ? VECTOR / ROWS : 1;
constexpr int INPUTS = THREAD_GROUPS * CHANNELS;
static_assert(VECTOR % ROWS == 0 || ROWS % VECTOR == 0);
static_assert(INPUTS % ACCESS == 0);

using Access = Pack<element_t, ACCESS>;
struct Inputs {
  Access part[INPUTS / ACCESS];
};
using Weights = Pack<compute_t, VECTOR / PARTS>;  // 16 bytes of weights

// A thread's first channel, and its tile's first pixel in the phase's output.
struct ChannelSpot : Spot {
  int channel;
};

device_inline ChannelSpot channel_spot_of(u32 block) {
  const u32 channel_tile = block % CHANNEL_TILES;
  const u64 run = static_cast<u64>(block / CHANNEL_TILES) * RUNS + thread_x() / LANES_C;
  return {spot_of<TILE_P, TILE_Q>(run),
          static_cast<int>(channel_tile * BLOCK_CHANNELS + thread_x() % LANES_C * VECTOR)};
}

template <int PHASE>
device_inline void compute(const GatherParams& params, const ChannelSpot& spot,
                           const compute_t* filter) {
  constexpr int TAPS_R = FILTER_R[PHASE], TAPS_S = FILTER_S[PHASE];
  // The source rows and columns that the tile reads.
  constexpr int ROWS_MET = (TILE_P - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1;
  constexpr int COLUMNS_MET = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
  compute_t sums[TILE_P][TILE_Q][VECTOR];
#pragma unroll
  for (int i = 0; i < TILE_P; ++i)
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j)
#pragma unroll
      for (int c = 0; c < VECTOR; ++c) sums[i][j][c] = 0;

  if constexpr (TAPS_R > 0 && TAPS_S > 0) {
    const int h0 =
        spot.p * STRIDE_H + ORIGIN_H[PHASE] - (STEP_H < 0 ? (TAPS_R - 1) * DISTANCE_H : 0);
    const int w0 =
        spot.q * STRIDE_W + ORIGIN_W[PHASE] - (STEP_W < 0 ? (TAPS_S - 1) * DISTANCE_W : 0);
    const element_t* const source = static_cast<const element_t*>(params.source) +
                                    spot.image * SOURCE_STRIDE_N + spot.channel / ROWS * CHANNELS +
                                    static_cast<i64>(w0) * SOURCE_STRIDE_W;
#pragma unroll UNROLLED_ROWS
    for (int y = 0; y < ROWS_MET; ++y) {
      const int h = h0 + y;
      if (static_cast<u32>(h) >= static_cast<u32>(SOURCE_H)) continue;
      const element_t* const line = source + static_cast<i64>(h) * SOURCE_STRIDE_H;
      Inputs values[COLUMNS_MET] = {};
#pragma unroll
      for (int x = 0; x < COLUMNS_MET; ++x)
        if (static_cast<u32>(w0 + x) < static_cast<u32>(SOURCE_W)) {
          const element_t* const place = line + static_cast<i64>(x) * SOURCE_STRIDE_W;
#pragma unroll
          for (int part = 0; part < INPUTS / ACCESS; ++part)
            values[x].part[part] = *reinterpret_cast<const Access*>(place + part * ACCESS);
        }
#pragma unroll
      for (int i = 0; i < TILE_P; ++i) {
        const int from = y - i * STRIDE_H;
        if (from < 0 || from % DISTANCE_H != 0 || from / DISTANCE_H >= TAPS_R) continue;
        const compute_t* const weights = filter +
                                         from / DISTANCE_H * (TAPS_S * CHANNELS * BLOCK_CHANNELS) +
                                         thread_x() % LANES_C * VECTOR;
#pragma unroll
        for (int tap = 0; tap < TAPS_S * CHANNELS; ++tap) {
          const int s = tap / CHANNELS, in = tap % CHANNELS;
          compute_t weight[VECTOR];
#pragma unroll
          for (int part = 0; part < PARTS; ++part) {
            const auto some = *reinterpret_cast<const Weights*>(weights + tap * BLOCK_CHANNELS +
                                                                part * (VECTOR / PARTS));
#pragma unroll
            for (int c = 0; c < VECTOR / PARTS; ++c)
              weight[part * (VECTOR / PARTS) + c] = some.element[c];
          }
#pragma unroll
          for (int j = 0; j < TILE_Q; ++j)
#pragma unroll
            for (int c = 0; c < VECTOR; ++c) {
              const int input = (ROWS < VECTOR ? c / ROWS * CHANNELS : 0) + in;
              sums[i][j][c] += to_compute(values[j * STRIDE_W + s * DISTANCE_W]
                                              .part[input / ACCESS]
                                              .element[input % ACCESS]) *
                               weight[c];
            }
        }
      }
    }
  }

  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out);
  epilogue.z = static_cast<const output_t*>(params.z);
  epilogue.bias = static_cast<const output_t*>(params.bias);
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
  compute_t bias[VECTOR];
#pragma unroll
  for (int c = 0; c < VECTOR; ++c) bias[c] = epilogue.bias_of(spot.channel + c);
#pragma unroll
  for (int i = 0; i < TILE_P; ++i) {
    if (spot.p + i >= OUT_P[PHASE]) continue;
    const i64 at = OUT_FIRST[PHASE] + spot.image * OUT_STRIDE_N + spot.channel +
                   static_cast<i64>(spot.p + i) * OUT_STRIDE_P;
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j)
      if (spot.q + j < OUT_Q[PHASE])
        epilogue.store_vector(at + static_cast<i64>(spot.q + j) * OUT_STRIDE_Q, sums[i][j], bias);
  }
}

template <int PHASE>
device_inline void run_phase(const GatherParams& params, u32 block, u32 phase, compute_t* filter) {
  if (phase == PHASE) {
    const ChannelSpot spot = channel_spot_of(block);
    load_filter<PHASE, BLOCK_CHANNELS, THREADS>(
        params, spot.channel - static_cast<int>(thread_x() % LANES_C) * VECTOR, filter);
    block_barrier();
    if (spot.image < params.images && spot.channel < GROUPS * ROWS)
      compute<PHASE>(params, spot, filter);
    return;
  }
  if constexpr (PHASE + 1 < PHASES) run_phase<PHASE + 1>(params, block, phase, filter);
}

KILN_KERNEL(depthwise_nhwc_fma, THREADS, MIN_BLOCKS, GatherParams, params) {
  compute_t* const filter = shared_array<compute_t, MOST_TAPS * CHANNELS * BLOCK_CHANNELS>(0);
  const u32 blocks = static_cast<u32>(params.tiles);  // blocks of a phase
  const u32 phase = PHASES == 1 ? 0 : block_x() / blocks;
  run_phase<0>(params, block_x() - phase * blocks, phase, filter);
}
