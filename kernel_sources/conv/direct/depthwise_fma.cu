// Forward convolution and data gradient with few output channels per group (up to MOST_ROWS). A
// matrix product would leave most of a tile idle, so each thread slides along a row instead.
//
// A block computes TILE_P x (RUNS * RUN) pixels of one image for all rows of a group. If images are
// small, it computes UNITS of them, each one image of one group. The source's patch and the filter
// are copied to shared memory channel by channel, with STAGES channels in flight. A thread computes
// RUN adjacent pixels: it reads the values that these need from a row of the patch once, and uses
// them from registers for every tap and every row of the output. The phases of a strided data
// gradient share the patch: a pixel stands for one output of each phase.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "conv/geometry/gather_params.h"
#include "conv/store/epilogue.cuh"
#include "target/async_copy.cuh"
#include "target/shared_memory.cuh"

constexpr int UNIT_THREADS = TILE_P * RUNS, WORKERS = UNITS * UNIT_THREADS;
constexpr int THREADS = (WORKERS + 31) / 32 * 32;
constexpr int DISTANCE_H = STEP_H < 0 ? -STEP_H : STEP_H,
              DISTANCE_W = STEP_W < 0 ? -STEP_W : STEP_W;
// With a negative step the taps are reversed: the first position belongs to the last tap.
constexpr bool BACK_H = STEP_H < 0, BACK_W = STEP_W < 0;

// The lowest position in the source that a tap of a phase reads for pixel 0.
device_inline constexpr int lower_h(int phase) {
  return ORIGIN_H[phase] - (BACK_H ? (FILTER_R[phase] - 1) * DISTANCE_H : 0);
}
device_inline constexpr int lower_w(int phase) {
  return ORIGIN_W[phase] - (BACK_W ? (FILTER_S[phase] - 1) * DISTANCE_W : 0);
}
// The number of elements of a phase's filter, [tap][row], and of the filters of the phases before
// it.
device_inline constexpr int filter_of(int phase) {
  return FILTER_R[phase] * FILTER_S[phase] * PADDED_ROWS;
}
device_inline constexpr int filter_before(int phase) {
  int before = 0;
  for (int other = 0; other < phase; ++other) before += filter_of(other);
  return before;
}
constexpr int FILTER = filter_before(PHASES);

constexpr int PATCH_H = (TILE_P - 1) * STRIDE_H + REACH_H;
// Rows of the patch begin at multiples of 16 bytes, and where copies of the source begin.
constexpr int PATCH_W = (RUNS - 1) * RUN * STRIDE_W + THREAD_ROW;
constexpr int PATCH = PATCH_H * PATCH_W;
constexpr int STAGE = PATCH + (FILTER + 3) / 4 * 4;  // elements of a unit in a stage

// The first pixel and the first unit of a block; and the image and the group of a unit.
struct Origin {
  u64 unit;
  int p, q;
};
device_inline Origin origin_of(u32 block) {
  const u32 row = DIVIDE(DIV_TILES_Q, block), units = DIVIDE(DIV_TILES_P, row);
  Origin origin;
  origin.q = static_cast<int>(block - row * DIV_TILES_Q) * (RUNS * RUN);
  origin.p = static_cast<int>(row - units * DIV_TILES_P) * TILE_P;
  origin.unit = static_cast<u64>(units) * UNITS;
  return origin;
}
struct Unit {
  i64 image;
  int group;
  bool exists;
  device_inline Unit(const GatherParams& params, u64 unit) {
    const u64 n = DIVIDE(DIV_GROUPS, unit);
    image = static_cast<i64>(n);
    group = static_cast<int>(unit - n * DIV_GROUPS);
    exists = image < params.images;
  }
};

// Copies COUNT contiguous elements, or writes zeros if !valid.
template <int COUNT>
device_inline void move(compute_t* to, const element_t* from, bool valid) {
  if constexpr (ASYNC) {
    async_copy<static_cast<int>(sizeof(element_t)) * COUNT>(to, from, valid);
  } else {
    Pack<element_t, COUNT> pack = {};
    if (valid) pack = *reinterpret_cast<const Pack<element_t, COUNT>*>(from);
    Pack<compute_t, COUNT> values;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) values.element[i] = to_compute(pack.element[i]);
    *reinterpret_cast<Pack<compute_t, COUNT>*>(to) = values;
  }
}

template <int PHASE>
device_inline void load_filter(const element_t* w, compute_t* to, bool exists) {
  constexpr int TAPS_R = FILTER_R[PHASE], TAPS_S = FILTER_S[PHASE];
#pragma unroll 1
  for (int i = thread_x(); i < filter_of(PHASE); i += THREADS) {
    const int tap = i / PADDED_ROWS, row = i - tap * PADDED_ROWS;
    // Taps are ordered by their position in the patch.
    const int line = tap / (TAPS_S > 0 ? TAPS_S : 1), column = tap - line * TAPS_S;
    const int r = BACK_H ? TAPS_R - 1 - line : line, s = BACK_W ? TAPS_S - 1 - column : column;
    move<1>(to + filter_before(PHASE) + i,
            w + W_FIRST[PHASE] +
                (static_cast<i64>(row) * W_STRIDE_ROW + static_cast<i64>(r) * W_STRIDE_R +
                 static_cast<i64>(s) * W_STRIDE_S),
            exists && row < ROWS);
  }
  if constexpr (PHASE + 1 < PHASES) load_filter<PHASE + 1>(w, to, exists);
}

// Starts to load one channel of all units.
device_inline void load(const GatherParams& params, const Origin& origin, int channel,
                        compute_t* stage) {
  constexpr int COPIES = PATCH_W / PACK, UNIT_COPIES = PATCH_H * COPIES;  // of a row; of a unit
  const int first_h = origin.p * STRIDE_H + LOWEST_H,
            first_w = origin.q * STRIDE_W + LOWEST_W - SHIFT;
#pragma unroll 4
  for (int i = thread_x(); i < UNITS * UNIT_COPIES; i += THREADS) {
    const int number = UNITS == 1 ? 0 : i / UNIT_COPIES, copy = i - number * UNIT_COPIES;
    const Unit unit(params, origin.unit + static_cast<u64>(number));
    const int row = copy / COPIES, column = (copy - row * COPIES) * PACK;
    const int h = first_h + row, v = first_w + column;
    const bool inside = unit.exists && static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                        static_cast<u32>(v) < static_cast<u32>(SOURCE_W);
    move<PACK>(stage + number * STAGE + copy * PACK,
               static_cast<const element_t*>(params.source) +
                   (unit.image * SOURCE_STRIDE_N +
                    (static_cast<i64>(unit.group) * CHANNELS + channel) * SOURCE_STRIDE_C +
                    static_cast<i64>(h) * SOURCE_STRIDE_H + static_cast<i64>(v) * SOURCE_STRIDE_W),
               inside);
  }
#pragma unroll 1
  for (int number = 0; number < UNITS; ++number) {
    const Unit unit(params, origin.unit + static_cast<u64>(number));
    load_filter<0>(static_cast<const element_t*>(params.w) +
                       static_cast<i64>(unit.group) * W_STRIDE_GROUP +
                       static_cast<i64>(channel) * W_STRIDE_C,
                   stage + number * STAGE + PATCH, unit.exists);
  }
}

struct alignas(16) Quad {
  compute_t element[16 / sizeof(compute_t)];
};

using Sums = compute_t[PHASES][ROWS][RUN];

// Adds the products of row r of the filters of phases PHASE to END - 1 with what a thread has of a
// row of the patch.
template <int PHASE, int END>
device_inline void add_row(Sums& sums, const compute_t (&values)[THREAD_ROW],
                           const compute_t* filter, int r) {
  constexpr int TAPS_S = FILTER_S[PHASE], RIGHT = SHIFT + lower_w(PHASE) - LOWEST_W;
#pragma unroll
  for (int s = 0; s < TAPS_S; ++s) {
    compute_t weights[ROWS];
#pragma unroll
    for (int row = 0; row < ROWS; ++row)
      weights[row] = filter[filter_before(PHASE) + (r * TAPS_S + s) * PADDED_ROWS + row];
#pragma unroll
    for (int row = 0; row < ROWS; ++row)
#pragma unroll
      for (int i = 0; i < RUN; ++i)
        sums[PHASE][row][i] += weights[row] * values[RIGHT + i * STRIDE_W + s * DISTANCE_W];
  }
  if constexpr (PHASE + 1 < END) add_row<PHASE + 1, END>(sums, values, filter, r);
}

// Whether any of the phases that are merged with PHASE, the first of them, has a tap.
device_inline constexpr bool have_taps(int phase) {
  int taps = 0;
  for (int i = 0; i < MERGED; ++i) taps += FILTER_R[phase + i] * FILTER_S[phase + i];
  return taps > 0;
}

// Adds the products of one channel. patch points to the thread's first element, filter to the
// channel's filter. Merged phases have the same rows of taps, and so read the same rows.
template <int PHASE>
device_inline void multiply(Sums& sums, const compute_t* patch, const compute_t* filter) {
  constexpr int DOWN = lower_h(PHASE) - LOWEST_H;
  if constexpr (have_taps(PHASE)) {
#pragma unroll 1
    for (int r = 0; r < FILTER_R[PHASE]; ++r) {
      constexpr int QUAD = sizeof(Quad) / sizeof(compute_t);
      compute_t values[THREAD_ROW];
#pragma unroll
      for (int i = 0; i < THREAD_ROW / QUAD; ++i) {
        const Quad quad =
            *reinterpret_cast<const Quad*>(patch + (DOWN + r * DISTANCE_H) * PATCH_W + i * QUAD);
#pragma unroll
        for (int j = 0; j < QUAD; ++j) values[i * QUAD + j] = quad.element[j];
      }
      add_row<PHASE, PHASE + MERGED>(sums, values, filter, r);
    }
  }
  if constexpr (PHASE + MERGED < PHASES) multiply<PHASE + MERGED>(sums, patch, filter);
}

// What a thread has of a row of the output, its piece: its pixels of all merged phases.
constexpr int PIECE = RUN * MERGED, PIECE_VECTORS = PIECE / OUT_VECTOR;
// The length of the rows of the output that phase `first` begins.
device_inline constexpr int row_length(int first) {
  int length = 0;
  for (int i = 0; i < MERGED; ++i) length += OUT_Q[first + i];
  return length;
}
// Two lanes store 32 bytes beside each other, a sector of memory, in one access.
constexpr bool PAIRED = PIECE_VECTORS % 2 == 0 && OUT_VECTOR * sizeof(output_t) == 16;

// Where a piece lies. left: elements from its first one to the end of the row, 0 or less if the
// thread has none to store.
struct Piece {
  i64 at, z_at;
  int left;
  compute_t bias;
};
device_inline Piece chosen(bool first, const Piece& a, const Piece& b) {
  return {first ? a.at : b.at, first ? a.z_at : b.z_at, first ? a.left : b.left,
          first ? a.bias : b.bias};
}

// Stores elements `first` to `first` + OUT_VECTOR - 1 of a piece.
device_inline void store_some(const Epilogue& epilogue, const Piece& piece, int first,
                              const compute_t (&some)[OUT_VECTOR]) {
  constexpr i64 STRIDE = OUT_STRIDE_Q / MERGED, Z_STRIDE = Z_STRIDE_Q / MERGED;
  if (OUT_VECTOR > 1 && first + OUT_VECTOR <= piece.left) {
    compute_t biases[OUT_VECTOR];
#pragma unroll
    for (int j = 0; j < OUT_VECTOR; ++j) biases[j] = piece.bias;
    epilogue.store_vector(piece.at + first, some, biases);
    return;
  }
#pragma unroll
  for (int j = 0; j < OUT_VECTOR; ++j) {
    if (first + j >= piece.left) continue;
    const i64 here = piece.at + (first + j) * STRIDE;
    epilogue.store_one(here, RESIDUAL ? piece.z_at + (first + j) * Z_STRIDE : here, some[j],
                       piece.bias);
  }
}

// Stores a piece. With PAIRED, lanes 2i and 2i + 1 swap vectors: they store neighbouring vectors of
// the first lane's piece, then of the second one's. All lanes of the warp must take part.
device_inline void store_piece(const Epilogue& epilogue, const Piece& piece,
                               const compute_t (&values)[PIECE]) {
  if constexpr (PAIRED) {
    const bool odd = thread_x() % 2 != 0;
    const i64 at = warp_shuffle_xor(piece.at, 1);  // in the output as in what beta scales
    const Piece other = {at, at, warp_shuffle_xor(piece.left, 1),
                         BIAS ? warp_shuffle_xor(piece.bias, 1) : compute_t(0)};
    const Piece first = chosen(odd, other, piece), second = chosen(odd, piece, other);
#pragma unroll
    for (int i = 0; i < PIECE; i += 2 * OUT_VECTOR) {
      compute_t of_first[OUT_VECTOR], of_second[OUT_VECTOR];
#pragma unroll
      for (int j = 0; j < OUT_VECTOR; ++j) {
        const compute_t left = values[i + j], right = values[i + OUT_VECTOR + j];
        const compute_t received = warp_shuffle_xor(odd ? left : right, 1);
        of_first[j] = odd ? received : left;
        of_second[j] = odd ? right : received;
      }
      const int place = i + (odd ? OUT_VECTOR : 0);
      store_some(epilogue, first, place, of_first);
      store_some(epilogue, second, place, of_second);
    }
  } else {
#pragma unroll
    for (int i = 0; i < PIECE; i += OUT_VECTOR) {
      compute_t some[OUT_VECTOR];
#pragma unroll
      for (int j = 0; j < OUT_VECTOR; ++j) some[j] = values[i + j];
      store_some(epilogue, piece, i, some);
    }
  }
}

// Stores the thread's sums. p, q: its first pixel, the same in every phase; works: whether it has
// any.
template <int PHASE>
device_inline void store(const Sums& sums, const Epilogue& epilogue, const Unit& unit, bool works,
                         int p, int q) {
#pragma unroll
  for (int row = 0; row < ROWS; ++row) {
    const i64 channel = static_cast<i64>(unit.group) * ROWS + row;
    Piece piece;
    piece.at = OUT_FIRST[PHASE] + unit.image * OUT_STRIDE_N + channel * OUT_STRIDE_ROW +
               static_cast<i64>(p) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q;
    piece.z_at = Z_FIRST[PHASE] + unit.image * Z_STRIDE_N + channel * Z_STRIDE_ROW +
                 static_cast<i64>(p) * Z_STRIDE_P + static_cast<i64>(q) * Z_STRIDE_Q;
    piece.left = works && p < OUT_P[PHASE] ? row_length(PHASE) - q * MERGED : 0;
    piece.bias = works ? epilogue.bias_of(static_cast<int>(channel)) : 0;
    compute_t values[PIECE];
#pragma unroll
    for (int i = 0; i < PIECE; ++i) values[i] = sums[PHASE + i % MERGED][row][i / MERGED];
    store_piece(epilogue, piece, values);
  }
  if constexpr (PHASE + MERGED < PHASES) store<PHASE + MERGED>(sums, epilogue, unit, works, p, q);
}

KILN_KERNEL(depthwise_fma, THREADS, MIN_BLOCKS, GatherParams, params) {
  compute_t* const stages = shared_array<compute_t, STAGES * UNITS * STAGE>(0);
  const Origin origin = origin_of(block_x());
  const int number = static_cast<int>(thread_x()) / UNIT_THREADS;
  const int in_unit = static_cast<int>(thread_x()) - number * UNIT_THREADS;
  const int in_p = in_unit / RUNS, in_q = (in_unit - in_p * RUNS) * RUN;
  const bool works = number < UNITS;

  constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;  // a single stage holds the only channel
#pragma unroll 1
  for (int channel = 0; channel < AHEAD; ++channel) {
    if (channel < CHANNELS) load(params, origin, channel, stages + channel * (UNITS * STAGE));
    async_commit();
  }
  Sums sums;
#pragma unroll
  for (int phase = 0; phase < PHASES; ++phase)
#pragma unroll
    for (int row = 0; row < ROWS; ++row)
#pragma unroll
      for (int i = 0; i < RUN; ++i) sums[phase][row][i] = 0;

  int slot = 0;
#pragma unroll 1
  for (int channel = 0; channel < CHANNELS; ++channel) {
    async_wait<AHEAD - 1>();
    block_barrier();  // this channel has landed; all threads have read the previous slot
    if (channel + AHEAD < CHANNELS)
      load(params, origin, channel + AHEAD,
           stages + ((slot == 0 ? STAGES : slot) - 1) * (UNITS * STAGE));
    async_commit();
    const compute_t* const stage = stages + (slot * UNITS + (works ? number : 0)) * STAGE;
    if (works)
      multiply<0>(sums, stage + in_p * STRIDE_H * PATCH_W + in_q * STRIDE_W, stage + PATCH);
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }

  const Unit unit(params, origin.unit + static_cast<u64>(number));
  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out);
  epilogue.z = static_cast<const output_t*>(params.z);
  epilogue.bias = static_cast<const output_t*>(params.bias);
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
  store<0>(sums, epilogue, unit, works && unit.exists, origin.p + in_p, origin.q + in_q);
}
