// Forward convolution and data gradient with few output channels per group (up to MOST_ROWS). A
// matrix product would leave most of a tile idle, so each thread slides along a row instead.
//
// A block computes TILE_P x (RUNS * RUN) pixels of one image for all rows of a group. If images are
// small, it computes UNITS of them, each one image of one group. The source's patch and the filter
// are copied to shared memory channel by channel, with STAGES channels in flight. A thread computes
// RUN_P rows of RUN adjacent pixels: it reads the values that these need from a row of the patch
// once, and uses them from registers for every tap and every row of the output. The phases of a
// strided data gradient share the patch: a pixel stands for one output of each phase. Where the
// pixels of MERGED phases alternate in a row of the output, which is contiguous, they are stored
// together.
//
// The patch lies so that the quads (16 bytes) that a warp reads at once are in different banks:
// quads that are LANE_QUADS apart, from one thread's run to the next one's, are neighbours, and so
// are rows that are ROWS_APART apart.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "conv/geometry/gather_params.h"
#include "conv/geometry/tap_distance.cuh"
#include "conv/store/epilogue.cuh"
#include "target/async_copy.cuh"
#include "target/shared_memory.cuh"

constexpr int UNIT_THREADS = TILE_P / RUN_P * RUNS, WORKERS = UNITS * UNIT_THREADS;
constexpr int THREADS = (WORKERS + 31) / 32 * 32;
// The threads that load a unit: those that compute it, or all threads of a block with one unit.
constexpr int LOADERS = UNITS == 1 ? THREADS : UNIT_THREADS;
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

struct alignas(16) Quad {
  compute_t element[16 / sizeof(compute_t)];
};
constexpr int QUAD = sizeof(Quad) / sizeof(compute_t);

constexpr int PATCH_H = (TILE_P - 1) * STRIDE_H + REACH_H;
// Rows of the patch begin at multiples of 16 bytes, and where copies of the source begin.
constexpr int PATCH_W = (RUNS - 1) * RUN * STRIDE_W + THREAD_ROW;
constexpr int LANE_QUADS = RUN * STRIDE_W / QUAD, ROWS_APART = RUN_P * STRIDE_H;
constexpr int ROWS_BESIDE = (PATCH_H + ROWS_APART - 1) / ROWS_APART;
// The place of a row, and of a quad of it, in quads. PITCH: from a row to its neighbour; PLANE:
// from the quads that threads read first to those that they read next.
device_inline constexpr int row_place(int row) {
  return (row % ROWS_APART * ROWS_BESIDE + row / ROWS_APART) * PITCH;
}
device_inline constexpr int quad_place(int quad) {
  return quad % LANE_QUADS * PLANE + quad / LANE_QUADS;
}
constexpr int PATCH = LANE_QUADS * PLANE * QUAD;
static_assert(PLANE >= ROWS_APART * ROWS_BESIDE * PITCH);
static_assert(LANE_QUADS * PITCH * QUAD >= PATCH_W);
static_assert(STAGE >= PATCH + FILTER && STAGE % QUAD == 0);  // elements of a unit in a stage

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
device_inline void load_filter(const element_t* w, compute_t* to, bool exists, int first) {
  constexpr int TAPS_R = FILTER_R[PHASE], TAPS_S = FILTER_S[PHASE];
#pragma unroll 1
  for (int i = first; i < filter_of(PHASE); i += LOADERS) {
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
  if constexpr (PHASE + 1 < PHASES) load_filter<PHASE + 1>(w, to, exists, first);
}

// Starts to load one channel of a unit; first: the thread's number among the LOADERS that share it.
device_inline void load(const GatherParams& params, const Origin& origin, const Unit& unit,
                        int channel, int first, compute_t* stage) {
  constexpr int COPIES = PATCH_W / PACK;  // of a row
  const int first_h = origin.p * STRIDE_H + LOWEST_H,
            first_w = origin.q * STRIDE_W + LOWEST_W - SHIFT;
  const element_t* const plane =
      static_cast<const element_t*>(params.source) +
      (unit.image * SOURCE_STRIDE_N +
       (static_cast<i64>(unit.group) * CHANNELS + channel) * SOURCE_STRIDE_C);
#pragma unroll 4
  for (int i = first; i < PATCH_H * COPIES; i += LOADERS) {
    const int row = i / COPIES, column = (i - row * COPIES) * PACK;
    const int place = (row_place(row) + quad_place(column / QUAD)) * QUAD + column % QUAD;
    const int h = first_h + row, v = first_w + column;
    const bool inside = unit.exists && static_cast<u32>(h) < static_cast<u32>(SOURCE_H) &&
                        static_cast<u32>(v) < static_cast<u32>(SOURCE_W);
    move<PACK>(
        stage + place,
        plane + (static_cast<i64>(h) * SOURCE_STRIDE_H + static_cast<i64>(v) * SOURCE_STRIDE_W),
        inside);
  }
  load_filter<0>(static_cast<const element_t*>(params.w) +
                     static_cast<i64>(unit.group) * W_STRIDE_GROUP +
                     static_cast<i64>(channel) * W_STRIDE_C,
                 stage + PATCH, unit.exists, first);
}

using Sums = compute_t[PHASES][ROWS][RUN_P][RUN];

// Adds the products of row r of the filters of phases PHASE to END - 1, for row j of the thread's
// pixels, with what the thread has of a row of the patch.
template <int PHASE, int END>
device_inline void add_row(Sums& sums, const compute_t (&values)[THREAD_ROW],
                           const compute_t* filter, int r, int j) {
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
        sums[PHASE][row][j][i] += weights[row] * values[RIGHT + i * STRIDE_W + s * DISTANCE_W];
  }
  if constexpr (PHASE + 1 < END) add_row<PHASE + 1, END>(sums, values, filter, r, j);
}

// Reads what a thread needs of a row of the patch, counted from the thread's first row.
device_inline void read_row(const compute_t* patch, int row, compute_t (&values)[THREAD_ROW]) {
  const compute_t* const line = patch + row_place(row) * QUAD;
#pragma unroll
  for (int i = 0; i < THREAD_ROW / QUAD; ++i) {
    const Quad quad = *reinterpret_cast<const Quad*>(line + quad_place(i) * QUAD);
#pragma unroll
    for (int j = 0; j < QUAD; ++j) values[i * QUAD + j] = quad.element[j];
  }
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
  constexpr int DOWN = lower_h(PHASE) - LOWEST_H, TAPS_R = FILTER_R[PHASE];
  if constexpr (have_taps(PHASE) && RUN_P == 1) {
#pragma unroll 1
    for (int r = 0; r < TAPS_R; ++r) {
      compute_t values[THREAD_ROW];
      read_row(patch, DOWN + r * DISTANCE_H, values);
      add_row<PHASE, PHASE + MERGED>(sums, values, filter, r, 0);
    }
  } else if constexpr (have_taps(PHASE)) {
#pragma unroll
    for (int y = 0; y < (RUN_P - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1; ++y) {
      compute_t values[THREAD_ROW];
      read_row(patch, DOWN + y, values);
#pragma unroll
      for (int j = 0; j < RUN_P; ++j) {
        const int from = y - j * STRIDE_H;
        if (from >= 0 && from % DISTANCE_H == 0 && from / DISTANCE_H < TAPS_R)
          add_row<PHASE, PHASE + MERGED>(sums, values, filter, from / DISTANCE_H, j);
      }
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
    const compute_t bias = works ? epilogue.bias_of(static_cast<int>(channel)) : 0;
#pragma unroll
    for (int j = 0; j < RUN_P; ++j) {
      Piece piece;
      piece.at = OUT_FIRST[PHASE] + unit.image * OUT_STRIDE_N + channel * OUT_STRIDE_ROW +
                 static_cast<i64>(p + j) * OUT_STRIDE_P + static_cast<i64>(q) * OUT_STRIDE_Q;
      piece.z_at = Z_FIRST[PHASE] + unit.image * Z_STRIDE_N + channel * Z_STRIDE_ROW +
                   static_cast<i64>(p + j) * Z_STRIDE_P + static_cast<i64>(q) * Z_STRIDE_Q;
      piece.left = works && p + j < OUT_P[PHASE] ? row_length(PHASE) - q * MERGED : 0;
      piece.bias = bias;
      compute_t values[PIECE];
#pragma unroll
      for (int i = 0; i < PIECE; ++i) values[i] = sums[PHASE + i % MERGED][row][j][i / MERGED];
      store_piece(epilogue, piece, values);
    }
  }
  if constexpr (PHASE + MERGED < PHASES) store<PHASE + MERGED>(sums, epilogue, unit, works, p, q);
}

KILN_KERNEL(depthwise_fma, THREADS, MIN_BLOCKS, GatherParams, params) {
  compute_t* const stages = shared_array<compute_t, STAGES * UNITS * STAGE>(0);
  const Origin origin = origin_of(block_x());
  const int number = UNITS == 1 ? 0 : static_cast<int>(thread_x()) / UNIT_THREADS;
  const int in_unit = static_cast<int>(thread_x()) - number * UNIT_THREADS;
  const int strip = in_unit / RUNS, run = in_unit - strip * RUNS;
  const bool has_unit = number < UNITS, works = has_unit && in_unit < UNIT_THREADS;
  const Unit unit(params, origin.unit + static_cast<u64>(number));
  compute_t* const own = stages + (has_unit ? number : 0) * STAGE;  // in the first slot

  constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;  // a single stage holds the only channel
#pragma unroll 1
  for (int channel = 0; channel < AHEAD; ++channel) {
    if (has_unit && channel < CHANNELS)
      load(params, origin, unit, channel, in_unit, own + channel * (UNITS * STAGE));
    async_commit();
  }
  Sums sums;
#pragma unroll
  for (int phase = 0; phase < PHASES; ++phase)
#pragma unroll
    for (int row = 0; row < ROWS; ++row)
#pragma unroll
      for (int j = 0; j < RUN_P; ++j)
#pragma unroll
        for (int i = 0; i < RUN; ++i) sums[phase][row][j][i] = 0;

  int slot = 0;
#pragma unroll 1
  for (int channel = 0; channel < CHANNELS; ++channel) {
    async_wait<AHEAD - 1>();
    block_barrier();  // this channel has landed; all threads have read the previous slot
    if (has_unit && channel + AHEAD < CHANNELS)
      load(params, origin, unit, channel + AHEAD, in_unit,
           own + ((slot == 0 ? STAGES : slot) - 1) * (UNITS * STAGE));
    async_commit();
    const compute_t* const stage = own + slot * (UNITS * STAGE);
    if (works) multiply<0>(sums, stage + (strip * PITCH + run) * QUAD, stage + PATCH);
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }

  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out);
  epilogue.z = static_cast<const output_t*>(params.z);
  epilogue.bias = static_cast<const output_t*>(params.bias);
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
  store<0>(sums, epilogue, unit, works && unit.exists, origin.p + strip * RUN_P,
           origin.q + run * RUN);
}
