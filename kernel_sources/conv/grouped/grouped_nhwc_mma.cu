// Forward convolution and data gradient of channels-last tensors of 16 bits whose groups have 2, 4,
// 8 or 16 channels, as many in as out, on the tensor cores.
//
// A block takes tiles of TILE_P x TILE_Q pixels by OCTETS octets (8 channels, 16 bytes) in turn. A
// tile's halo is loaded into shared memory as [pixel][octet] while the previous tile is multiplied.
// The filter stays in shared memory for all tiles, in the order of the fragments. A warp computes
// 32 pixels, the rows of its products, by 4 octets.
//
// The reduction of a product is the channels of one group at several taps: lane t of four reads the
// 16 bytes of an octet at tap 4 n + t, whose words are elements of operand A without any shuffling.
// There are no zeros between groups, so infinities and NaN stay in their group.
#include "common/magic.cuh"
#include "conv/geometry/gather_params.h"
#include "conv/geometry/lanes.cuh"
#include "conv/geometry/spot.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "conv/grouped/filter_bits.cuh"
#include "conv/store/epilogue.cuh"
#include "target/async_copy.cuh"
#include "target/shared_memory.cuh"
#include "target/warp_product.cuh"

constexpr int THREADS = 32 * WARPS_P * (OCTETS / WARP_OCTETS);
constexpr int PITCH =
    OCTETS * 16 + 16;  // of a pixel, padded so that neighboring lanes read different banks
constexpr u32 FILTER_OFFSET = 2 * STAGE_BYTES;

// A unit is the octets that hold whole groups. Its products in a step, which covers STEP_TAPS taps,
// and the sums that they are added to.
constexpr int UNIT_OCTETS = GROUP == 16 ? 2 : 1;
constexpr int UNITS = OCTETS / UNIT_OCTETS;  // units of a block
constexpr int STEP_QUADS = GROUP == 2 ? 2 : 1;
constexpr int PRODUCTS = GROUP == 2 ? 4 : GROUP == 16 ? 8 : 2;
constexpr int SUMS = GROUP == 2 ? 4 : GROUP == 8 ? 1 : 2;

struct alignas(8) RightOperand {
  u32 word[2];
};
struct alignas(16) Octet {
  u32 word[4];
};

// The halo of a phase.
template <int PHASE>
struct Halo {
  static constexpr int TAPS_R = FILTER_R[PHASE], TAPS_S = FILTER_S[PHASE], TAPS = TAPS_R * TAPS_S;
  static constexpr int STEPS = (TAPS + 4 * STEP_QUADS - 1) / (4 * STEP_QUADS);
  static constexpr int HEIGHT = (TILE_P - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1,
                       WIDTH = (TILE_Q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
  static constexpr int FIRST_H = ORIGIN_H[PHASE] - (STEP_H < 0 ? (TAPS_R - 1) * DISTANCE_H : 0),
                       FIRST_W = ORIGIN_W[PHASE] - (STEP_W < 0 ? (TAPS_S - 1) * DISTANCE_W : 0);
};

// Starts copying a tile's halo; pixels outside the source are zero.
template <int PHASE>
device_inline void load_halo(const GatherParams& params, u64 tile, int first_channel,
                             unsigned char* stage) {
  using H = Halo<PHASE>;
  if constexpr (H::TAPS > 0) {
    const Spot spot = spot_of<TILE_P, TILE_Q>(tile);
    const int h0 = spot.p * STRIDE_H + H::FIRST_H, w0 = spot.q * STRIDE_W + H::FIRST_W;
    static_assert(THREADS % OCTETS == 0);  // a thread copies the same octet of all its pixels
    const int thread = from_here(static_cast<int>(thread_x()));
    const int channel = first_channel + thread % OCTETS * 8;
    const element_t* const source =
        static_cast<const element_t*>(params.source) + spot.image * SOURCE_STRIDE_N + channel;
    unsigned char* const to = stage + thread % OCTETS * 16;
    const bool has_channel = channel < ALL_CHANNELS;
#pragma unroll 1
    for (int place = thread / OCTETS; place < H::HEIGHT * H::WIDTH; place += THREADS / OCTETS) {
      const int row = place / H::WIDTH, column = place - row * H::WIDTH;
      const int h = h0 + row, w = w0 + column;
      const bool valid = static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                         static_cast<u32>(w) < static_cast<u32>(SOURCE_W) && has_channel;
      async_copy<16>(
          to + place * PITCH,
          source + (static_cast<i64>(h) * SOURCE_STRIDE_H + static_cast<i64>(w) * SOURCE_STRIDE_W),
          valid);
    }
  }
}

// Word `i` of the operands B of the block's channels, which are [unit][step][product][lane]. A
// group of fewer than 8 channels repeats its filters over all 8 columns, so that each lane gets the
// sums of its own channels of the octet, whichever group they belong to.
template <int PHASE>
device_inline void load_word(u32 (&halves)[2], const element_t* w, int first_channel, int i) {
  constexpr int STEPS = Halo<PHASE>::STEPS;
  const int word = i % 2, lane = i / 2 % 32, product = i / 64 % PRODUCTS;
  const int step = i / (64 * PRODUCTS) % STEPS, unit = i / (64 * PRODUCTS * STEPS);
  const int column = lane / 4, t = lane % 4;
  int group = (first_channel + unit * UNIT_OCTETS * 8) / GROUP;
  int in = 2 * word, out = column % GROUP, tap = 4 * step + t;
  if constexpr (GROUP == 2) {
    group += product, in = 0, tap = 4 * (2 * step + word) + t;
  } else if constexpr (GROUP == 4) {
    group += product;
  } else if constexpr (GROUP == 8) {
    in += 4 * product;
  } else {
    in += 4 * (product / 2), out = 8 * (product % 2) + column;
  }
  if (unit >= UNITS) group = GROUPS;
  halves[0] = filter_bits<PHASE>(w, group, out, in, tap);
  halves[1] = filter_bits<PHASE>(w, group, out, in + 1, tap);
}

// Fills in the operands B. A thread loads several words before it stores the first, because each
// load takes as long as memory needs to answer.
template <int PHASE>
device_inline void load_filter(const GatherParams& params, int first_channel, u32* filter) {
  if constexpr (Halo<PHASE>::TAPS > 0) {
    constexpr int WORDS = UNITS * Halo<PHASE>::STEPS * PRODUCTS * 64, AT_ONCE = 4;
    const element_t* const w = static_cast<const element_t*>(params.w) + W_FIRST[PHASE];
#pragma unroll 1
    for (int i = thread_x(); i < WORDS; i += AT_ONCE * THREADS) {
      u32 halves[AT_ONCE][2];
#pragma unroll
      for (int k = 0; k < AT_ONCE; ++k)
        load_word<PHASE>(halves[k], w, first_channel, i + k * THREADS);
#pragma unroll
      for (int k = 0; k < AT_ONCE; ++k)
        if (i + k * THREADS < WORDS)
          filter[i + k * THREADS] = pack_shorts(halves[k][0], halves[k][1]);
    }
  }
}

// The offsets of the lane's taps of a phase, one in each quad of taps, from the pixel's first tap.
// A lane without a tap in the last quad reads the first tap and masks it.
template <int PHASE>
struct Taps {
  using H = Halo<PHASE>;
  static constexpr int QUADS = H::STEPS * STEP_QUADS;
  // A few offsets are kept in registers; more, or if registers are scarce, are computed when
  // needed.
  static constexpr bool KEPT = QUADS <= 3 && GROUP != 8;
  int kept[KEPT && QUADS > 0 ? QUADS : 1];
  u32 tail;  // mask for the last quad

  device_inline Taps() {
    const int lane = static_cast<int>(thread_x() % 4);
    if constexpr (KEPT) {
#pragma unroll
      for (int quad = 0; quad < QUADS; ++quad) kept[quad] = place(4 * quad + lane);
    }
    tail = H::TAPS / 4 * 4 + lane < H::TAPS ? ~0u : 0;
  }
  device_inline static int place(int tap) {
    if (tap >= H::TAPS) return 0;
    const int row = tap / H::TAPS_S, column = tap - row * H::TAPS_S;
    return (row * DISTANCE_H * H::WIDTH + column * DISTANCE_W) * PITCH;
  }
  device_inline int of(int quad) const {
    return KEPT ? kept[quad] : place(4 * quad + static_cast<int>(thread_x() % 4));
  }
};

// Reads the lane's octets of 32 pixels at its tap of a quad: rows g and g + 8 of each product.
template <int PHASE>
device_inline void load_octets(Octet (&to)[2][2], const unsigned char* stage,
                               const int (&pixels)[2][2], const Taps<PHASE>& taps, int quad) {
  constexpr int WHOLE = Halo<PHASE>::TAPS / 4;  // quads with four taps
  const unsigned char* const from = stage + taps.of(quad);
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      to[i][half] = *reinterpret_cast<const Octet*>(from + pixels[i][half]);
      if (quad < WHOLE) continue;
#pragma unroll
      for (int c = 0; c < 4; ++c) to[i][half].word[c] &= quad == WHOLE ? taps.tail : 0;
    }
}

// Adds the products of a unit's step. stage: address of the unit's octets; filter: address of the
// unit's operands B of the step.
template <int PHASE>
device_inline void add_step(float (&sums)[SUMS][2][4], const unsigned char* stage,
                            const int (&pixels)[2][2], const Taps<PHASE>& taps,
                            const RightOperand* filter, int step) {
  constexpr int READS = GROUP == 2 || GROUP == 16 ? 2 : 1;
  Octet octets[READS][2][2];
#pragma unroll
  for (int read = 0; read < READS; ++read)
    load_octets<PHASE>(octets[read], stage + (GROUP == 16 ? 16 * read : 0), pixels, taps,
                       STEP_QUADS * step + (GROUP == 2 ? read : 0));
#pragma unroll
  for (int product = 0; product < PRODUCTS; ++product) {
    const RightOperand right = filter[product * 32 + thread_x() % 32];
    // Which reads the two words of operand A come from, and which sums the product is added to.
    const int first = GROUP == 2 ? product : GROUP == 16 ? 2 * (product / 2 % 2) : 2 * product;
    const int second = GROUP == 2 ? first : first + 1;
    const int read = GROUP == 16 ? product / 4 : 0, other = GROUP == 2 ? 1 : read;
    const int sum = GROUP == 8 ? 0 : GROUP == 16 ? product % 2 : product;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const u32 left[4] = {octets[read][i][0].word[first], octets[read][i][1].word[first],
                           octets[other][i][0].word[second], octets[other][i][1].word[second]};
      add_product<element_t>(sums[sum][i], left, right.word);
    }
  }
}

// The sums of a warp's pixels and octets: [16 pixels][octet][the lane's two channels of pixel g,
// then of g + 8].
template <int PHASE>
device_inline void multiply(float (&results)[2][WARP_OCTETS][4], const unsigned char* stage,
                            const int (&pixels)[2][2], const Taps<PHASE>& taps,
                            const RightOperand* filter) {
  using H = Halo<PHASE>;
  constexpr int STEPS = H::STEPS;  // fewer taps, or several phases, need more registers
  constexpr int UNROLLED = STEPS <= 3 && GROUP >= (PHASES == 1 ? 4 : 8) ? STEPS : 1;
#pragma unroll
  for (int unit = 0; unit < WARP_OCTETS / UNIT_OCTETS; ++unit) {
    float sums[SUMS][2][4] = {};
    if constexpr (STEPS > 0) {
#pragma unroll UNROLLED
      for (int step = 0; step < STEPS; ++step)
        add_step<PHASE>(sums, stage + unit * UNIT_OCTETS * 16, pixels, taps,
                        filter + (unit * STEPS + step) * PRODUCTS * 32, step);
    }
    const u32 t = thread_x() % 4;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float(*const to)[4] = &results[i][unit * UNIT_OCTETS];
        if constexpr (GROUP == 2)
          to[0][c] = t < 2    ? t == 0 ? sums[0][i][c] : sums[1][i][c]
                        : t == 2 ? sums[2][i][c]
                              : sums[3][i][c];
        else if constexpr (GROUP == 4)
          to[0][c] = t < 2 ? sums[0][i][c] : sums[1][i][c];
        else
#pragma unroll
          for (int octet = 0; octet < UNIT_OCTETS; ++octet) to[octet][c] = sums[octet][i][c];
      }
  }
}

template <int PHASE>
device_inline void compute_tile(const GatherParams& params, u64 tile, int first_channel,
                                const unsigned char* stage, const Taps<PHASE>& taps,
                                const u32* filter) {
  using H = Halo<PHASE>;
  const int lane = static_cast<int>(thread_x() % 32), warp = static_cast<int>(thread_x() / 32);
  const int first_pixel = warp % WARPS_P * 32 + lane / 4, part = warp / WARPS_P;
  int pixels[2][2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pixel = first_pixel + 16 * i + 8 * half;
      pixels[i][half] =
          pixel < TILE_P * TILE_Q
              ? (pixel / TILE_Q * STRIDE_H * H::WIDTH + pixel % TILE_Q * STRIDE_W) * PITCH
              : 0;
    }
  float results[2][WARP_OCTETS][4];
  constexpr int PART_OPERANDS =
      WARP_OCTETS / UNIT_OCTETS * H::STEPS * PRODUCTS * 32;  // operands B of a warp's channels
  multiply<PHASE>(results, stage + part * WARP_OCTETS * 16, pixels, taps,
                  reinterpret_cast<const RightOperand*>(filter) + part * PART_OPERANDS);

  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out);
  epilogue.z = static_cast<const output_t*>(params.z);
  epilogue.bias = static_cast<const output_t*>(params.bias);
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
  const int channel = first_channel + (part * WARP_OCTETS + lane % 4) * 8;
  const bool exists = channel < ALL_CHANNELS;
  float bias[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) bias[c] = exists ? epilogue.bias_of(channel + c) : 0.0f;
  const Spot spot = spot_of<TILE_P, TILE_Q>(tile);
  const i64 first = OUT_FIRST[PHASE] + spot.image * OUT_STRIDE_N + channel;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float octets[2][8];
    exchange_octets(octets, results[i]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pixel = from_here(first_pixel) + 16 * i + 8 * half;
      const int p = spot.p + pixel / TILE_Q, q = spot.q + pixel % TILE_Q;
      if (exists && pixel < TILE_P * TILE_Q && p < OUT_P[PHASE] && q < OUT_Q[PHASE])
        epilogue.store_vector(
            first + static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q,
            octets[half], bias);
    }
  }
}

template <int PHASE>
device_inline void run_phase(const GatherParams& params, u32 phase, u32 slot, u32 slots,
                             int first_channel, unsigned char* stages, u32* filter) {
  if (phase == PHASE) {
    const u64 tiles = static_cast<u64>(params.tiles);
    load_halo<PHASE>(params, slot, first_channel, stages);
    async_commit();
    load_filter<PHASE>(params, first_channel, filter);
    const Taps<PHASE> taps;
    int stage = 0;
#pragma unroll 1
    for (u64 tile = slot; tile < tiles; tile += slots) {
      if (tile + slots < tiles)
        load_halo<PHASE>(params, tile + slots, first_channel, stages + (STAGE_BYTES - stage));
      async_commit();
      async_wait<1>();
      block_barrier();  // the tile's halo and the filter have landed
      compute_tile<PHASE>(params, tile, first_channel, stages + stage, taps, filter);
      block_barrier();  // all threads have read the stage, which is loaded next
      stage = STAGE_BYTES - stage;
    }
    return;
  }
  if constexpr (PHASE + 1 < PHASES)
    run_phase<PHASE + 1>(params, phase, slot, slots, first_channel, stages, filter);
}

// Block numbers count tiles of channels fastest, then phases, then slots, which take tiles of
// pixels in turn.
KILN_KERNEL(grouped_nhwc_mma, THREADS, MIN_BLOCKS, GatherParams, params) {
  unsigned char* const stages = shared_array<unsigned char, 2 * STAGE_BYTES>(0);
  u32* const filter = shared_array<u32, UNITS * MOST_STEPS * PRODUCTS * 64>(FILTER_OFFSET);
  const u32 rest = block_x() / CHANNEL_TILES, slot = rest / PHASES;
  run_phase<0>(params, rest % PHASES, slot, grid_x() / (CHANNEL_TILES * PHASES),
               static_cast<int>(block_x() % CHANNEL_TILES) * OCTETS * 8, stages, filter);
}
