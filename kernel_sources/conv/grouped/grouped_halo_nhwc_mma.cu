// Forward convolution, and data gradient with one phase, of channels-last tensors of 16 bits whose
// groups have 4, 8 or 16 channels, as many in as out, on the tensor cores. While a tile of pixels
// is computed, TMA loads the halo of the next ones; elements outside the source become zeros.
//
// A block takes tiles of TILE_P x TILE_Q pixels by OCTETS octets (8 channels, 16 bytes) in turn,
// and keeps its channels. A warp has a unit of 16 channels, whose filter it keeps in registers for
// all tiles, and every SLICES-th block of 2 rows by 8 columns of pixels, which are the rows of its
// products. Operand A is read from the halo as it lies: all 16 channels of a group at one tap, 8 at
// each of two taps, or 4 at each of four taps. So no product has zeros between groups, and
// infinities and NaN stay in their group.
#include "conv/grouped/filter_bits.cuh"
#include "conv/load/halo_boxes.cuh"
#include "conv/store/boxed_epilogue.cuh"
#include "target/shared_memory.cuh"
#include "target/warp_product.cuh"

constexpr int UNIT = 16;  // channels of a warp
constexpr int UNITS = OCTETS * 8 / UNIT, THREADS = 32 * UNITS * SLICES;
constexpr int TAPS = TAPS_R * TAPS_S;
// A step is a tap of 16 channels, two taps of 8, or four of 4. Each group has its own product; one
// of 16 channels has two, of 8 output channels each.
constexpr int STEP_TAPS = UNIT / GROUP, STEPS = (TAPS + STEP_TAPS - 1) / STEP_TAPS;
constexpr int PRODUCTS = GROUP == 4 ? 4 : 2;
constexpr int PIXEL_BYTES = 16 * OCTETS;
constexpr int HALO_H = rows_met(TILE_P);
constexpr int HALO_BYTES = HALO_H * HALO_W * PIXEL_BYTES;
constexpr int BLOCKS_P = TILE_P / 2, BLOCKS_Q = TILE_Q / 8;
constexpr int ZERO_OFFSET = STAGES * STAGE_BYTES;  // 16 zero bytes, read in place of a missing tap
constexpr int BARRIERS_OFFSET = ZERO_OFFSET + 16;
static_assert(GROUP == 4 || GROUP == 8 || GROUP == 16);
static_assert(HALO_W % 8 == (GROUP == 4 ? 4 : 0));
static_assert(HALO_BYTES <= STAGE_BYTES && STAGE_BYTES % 1024 == 0);
static_assert(TILE_P % 2 == 0 && TILE_Q % 8 == 0);
static_assert(BARRIERS_OFFSET + 8 * STAGES <= SHARED_BYTES);

using Halos = HaloRing<TILE_P, TILE_Q, HALO_BYTES, STAGE_BYTES>;

// The swizzled offset of 16 bytes of a box with lines of PIXEL_BYTES. Offsets that are a multiple
// of 8 lines apart are swizzled alike.
device_inline constexpr int permuted(int place) {
  return place ^ ((place >> 7 & (OCTETS - 1)) << 4);
}

// Two weights, of input channels `in` and `in` + 1, as a word of operand B.
device_inline u32 weight_pair(const element_t* w, int group, int out, int in, int tap) {
  return filter_bits<0>(w, group, out, in, tap) | filter_bits<0>(w, group, out, in + 1, tap) << 16;
}

// Operands B of a warp's unit. Their columns are numbered so that a lane gets neighbouring channels
// of both products of a group of 16. A group of 4 repeats its filters over all 8 columns.
struct Filter {
  u32 word[STEPS][PRODUCTS][2];  // [step][product][word]

  device_inline Filter(const element_t* w, int first_channel) {
    const int lane = static_cast<int>(thread_x() % 32), g = lane / 4, t = lane % 4, in = 2 * t;
    const int group = first_channel / GROUP;
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
      for (int product = 0; product < PRODUCTS; ++product)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          word[step][product][i] =
              GROUP == 16 ? weight_pair(w, group, g / 2 * 4 + product * 2 + g % 2, in + 8 * i, step)
              : GROUP == 8 ? weight_pair(w, group + product, g, in, 2 * step + i)
                           : weight_pair(w, group + product, g % 4, 2 * i, 4 * step + t);
  }
};

// The place in a halo, counted from a block of pixels, at which a pixel of the block meets a tap.
device_inline int met(int row, int column, int tap) {
  const int r = tap / TAPS_S, s = tap - r * TAPS_S;
  return (row * STRIDE_H + r * DISTANCE_H) * HALO_W + column * STRIDE_W + s * DISTANCE_W;
}

// Where a lane reads the operands A of its warp's unit: offsets from a block of pixels.
struct Reader {
  static constexpr bool LACKS_TAPS = TAPS % STEP_TAPS != 0;  // in the last step
  // Groups of 16: one for each tap of a row. Groups of 4: one for each row of pixels, because a
  // halo's rows are swizzled differently.
  static constexpr int ROWS_READ = GROUP == 4 ? 2 : 1, OFFSETS = GROUP == 16 ? TAPS_S : STEPS;
  int offset[OFFSETS][ROWS_READ];
  const unsigned char* zero;  // in place of a missing tap, else null

  device_inline Reader(int unit, const unsigned char* zeros) {
    const int lane = static_cast<int>(thread_x() % 32);
    const int upper = lane / 16;  // the second half of the reduction, for ldmatrix
    const int part = GROUP == 4 ? lane % 4 : upper;
#pragma unroll
    for (int i = 0; i < OFFSETS; ++i)
#pragma unroll
      for (int row = 0; row < ROWS_READ; ++row) {
        const int there = GROUP == 16  ? met(lane % 16 / 8, lane % 8, i)
                          : GROUP == 8 ? met(lane % 16 / 8, lane % 8, 2 * i + upper)
                                       : met(row, lane / 4, 4 * i + part);
        offset[i][row] = permuted(there * PIXEL_BYTES + unit * 32 + (GROUP == 16 ? upper * 16 : 0));
      }
    zero = LACKS_TAPS && part >= TAPS % STEP_TAPS ? zeros : nullptr;
  }
  device_inline const unsigned char* at(const unsigned char* block, int step, int octet,
                                        int row) const {
    if (LACKS_TAPS && step == STEPS - 1 && zero != nullptr) return zero;
    if constexpr (GROUP == 16)
      return block + offset[step % TAPS_S][0] + step / TAPS_S * (DISTANCE_H * HALO_W * PIXEL_BYTES);
    else
      return block + (offset[step][row] ^ octet * 16);
  }
};

struct alignas(16) Octet {
  u32 word[4];
};

// Multiplies a block of 16 pixels by the unit's filter: [product][pixel g, then g + 8][column].
device_inline void multiply(float (&sums)[PRODUCTS][4], const unsigned char* block,
                            const Reader& reader, const Filter& filter) {
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    if constexpr (GROUP == 4) {
#pragma unroll
      for (int octet = 0; octet < 2; ++octet) {
        const Octet first = *reinterpret_cast<const Octet*>(reader.at(block, step, octet, 0)),
                    second = *reinterpret_cast<const Octet*>(reader.at(block, step, octet, 1));
#pragma unroll
        for (int group = 0; group < 2; ++group) {
          const u32 left[4] = {first.word[2 * group], second.word[2 * group],
                               first.word[2 * group + 1], second.word[2 * group + 1]};
          add_product<element_t>(sums[2 * octet + group], left,
                                 filter.word[step][2 * octet + group]);
        }
      }
    } else {
      u32 left[4];
#pragma unroll
      for (int product = 0; product < 2; ++product) {
        if (GROUP == 8 || product == 0) load_matrices(left, reader.at(block, step, product, 0));
        add_product<element_t>(sums[product], left, filter.word[step][product]);
      }
    }
  }
}

// The first of the four channels of its unit that a lane stores.
device_inline int stored_channel() {
  const int t = static_cast<int>(thread_x() % 4);
  return GROUP == 8 ? t % 2 * 8 + t / 2 * 4 : 4 * t;
}

// A lane's four channels of pixel g (half 0) or g + 8. All lanes of the warp must take part.
device_inline void gather_channels(float (&out)[4], const float (&sums)[PRODUCTS][4], int half) {
  const bool odd = thread_x() % 2 != 0, upper = GROUP == 4 && thread_x() % 4 >= 2;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const int i = 2 * half + c;
    const float first = upper ? sums[PRODUCTS - 2][i] : sums[0][i],
                second = upper ? sums[PRODUCTS - 1][i] : sums[1][i];
    if constexpr (GROUP == 16) {
      out[c] = first, out[2 + c] = second;
    } else {
      const float other = warp_shuffle_xor(odd ? first : second, 1);
      out[c] = odd ? other : first, out[2 + c] = odd ? second : other;
    }
  }
}

KILN_KERNEL(grouped_halo_nhwc_mma, THREADS, MIN_BLOCKS, BoxedGatherParams, params) {
  unsigned char* const memory = shared_array<unsigned char, ZERO_OFFSET + 16>(0);
  Mbarrier* const landed = shared_array<Mbarrier, STAGES>(BARRIERS_OFFSET);
  const int first_channel = static_cast<int>(block_x() % CHANNEL_TILES) * (8 * OCTETS);
  const u32 first = block_x() / CHANNEL_TILES, step = grid_x() / CHANNEL_TILES;
  const int warp = static_cast<int>(thread_x() / 32), unit = warp % UNITS, slice = warp / UNITS;
  const Halos halos{params, memory, landed, first_channel};
  if (thread_x() < 4) reinterpret_cast<u32*>(memory + ZERO_OFFSET)[thread_x()] = 0;
  if (thread_x() == 0) halos.begin(first, step);
  const Filter filter(static_cast<const element_t*>(params.common.w) + W_FIRST[0],
                      first_channel + unit * UNIT);
  const Reader reader(unit, memory + ZERO_OFFSET);
  const Epilogue epilogue = boxed_epilogue(params);
  const int channel = first_channel + unit * UNIT + stored_channel();
  const bool has_channels = channel < ALL_CHANNELS;
  float bias[4] = {};
  if (has_channels) {
#pragma unroll
    for (int c = 0; c < 4; ++c) bias[c] = epilogue.bias_of(channel + c);
  }
  const int column = static_cast<int>(thread_x() / 4 % 8);  // of the lane's pixels in a block
  block_barrier();                                          // barriers and zeros are set

  u32 turn = 0;
#pragma unroll 1
  for (u32 tile = first; tile < params.common.tiles; tile += step, ++turn) {
    const unsigned char* const halo = halos.take(tile, step, turn);
    const BoxedSpot<TILE_P, TILE_Q> spot(tile);
    const i64 image = spot.image * OUT_STRIDE_N + channel;
#pragma unroll 1
    for (int block = slice; block < BLOCKS_P * BLOCKS_Q; block += SLICES) {
      const int row = block / BLOCKS_Q * 2, beside = block % BLOCKS_Q * 8;
      float sums[PRODUCTS][4] = {};
      multiply(sums, halo + (row * STRIDE_H * HALO_W + beside * STRIDE_W) * PIXEL_BYTES, reader,
               filter);
      const int q = spot.q + beside + column;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float results[4];
        gather_channels(results, sums, half);
        const int p = spot.p + row + half;
        if (has_channels && p < OUT_P[0] && q < OUT_Q[0])
          epilogue.store_vector(
              image + static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q,
              results, bias);
      }
    }
  }
}
