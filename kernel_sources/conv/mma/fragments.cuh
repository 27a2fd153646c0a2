// Operands of mma.sync in registers, one fragment at a time (32 bytes of the reduction, FRAGMENT_K
// elements), and their products.
//
// An operand has one of two layouts in shared memory. Along the reduction: a row of the tile is
// contiguous elements of the reduction, and ldmatrix loads 8 rows of 16 bytes (f64 has no ldmatrix:
// each lane reads its own elements). Rows are fragments_pitch() apart. Along the outer index: a row
// is one element of the reduction. ldmatrix transposes 16-bit elements; their rows are an odd
// number of 16 bytes apart. For f32 and f64, a lane reads RUN_M neighbouring elements, and rows are
// 32 bytes more than a multiple of 128 apart.
#pragma once

#include "conv/mma/fragment_words.cuh"
#include "conv/mma/promoted_sums.cuh"

static_assert(LANES_M == 8 && LANES_N == 4 && RUN_N == 2);

// An f64 element takes two registers, the lower half first.
struct Fragments {
  u32 m[PRODUCTS_M][4], n[PRODUCTS_N][2];
  compute_t lo_m[PRODUCTS_M][4], lo_n[PRODUCTS_N][2];  // lo parts (3xTF32)

  // Splits 3xTF32 operands after they are read. Called after the products of the previous fragment,
  // it overlaps with them; otherwise the first product would wait for all columns. Rows are split
  // just before their own products, because splitting them ahead would take registers
  // (SPLIT_ROWS_AHEAD: here).
  device_inline void split_tf32() {
    if constexpr (SPLIT) {
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j) split_tf32(n[j], lo_n[j]);
      if constexpr (SPLIT_ROWS_AHEAD) {
#pragma unroll
        for (int i = 0; i < PRODUCTS_M; ++i) split_tf32(m[i], lo_m[i]);
      }
    }
  }
  template <int COUNT>
  device_inline static void split_tf32(u32 (&operand)[COUNT], compute_t (&lo)[COUNT]) {
#pragma unroll
    for (int c = 0; c < COUNT; ++c) {
      const HiLo parts = split(float_of(operand[c]));
      operand[c] = bits_of(parts.hi), lo[c] = parts.lo;
    }
  }
};

// ---- rows along the reduction, PITCH bytes apart ----------------------------------------------

constexpr bool BY_MATRICES = ELEMENT_BYTES < 8;

// The row that a lane addresses first, and the byte offset in that row's fragment. One read takes
// READ_ROWS rows.
device_inline int fragment_row_m(int lane) { return BY_MATRICES ? lane % 16 : lane / 4; }
device_inline int fragment_part_m(int lane) {
  return BY_MATRICES ? lane / 16 * 16 : lane % 4 * ELEMENT_BYTES;
}
constexpr int READ_ROWS = BY_MATRICES ? 16 : 8;
constexpr int READS_M = PRODUCTS_M * 16 / READ_ROWS;
// The same for columns; one read serves READ_PRODUCTS products.
constexpr int READ_PRODUCTS = BY_MATRICES ? 2 : 1;
constexpr int READS_N = (PRODUCTS_N + READ_PRODUCTS - 1) / READ_PRODUCTS;
device_inline int fragment_row_n(int lane) {
  return BY_MATRICES ? lane % 8 + lane / 16 * 8 : lane / 4;
}
device_inline int fragment_part_n(int lane) {
  return BY_MATRICES ? lane / 8 % 2 * 16 : lane % 4 * ELEMENT_BYTES;
}

// Loads two contiguous words.
device_inline void load_pair(u32& first, u32& second, const byte_t* from) {
  struct alignas(8) Pair {
    u32 word[2];
  };
  const Pair pair = *reinterpret_cast<const Pair*>(from);
  first = pair.word[0], second = pair.word[1];
}

// A thread's rows are RUN_M neighbours in the output but 8 apart in a product. So row m of the tile
// is kept in row kept_row(m) of shared memory.
device_inline int kept_row(int m) {
  constexpr int ROUND = LANES_M * RUN_M;
  return m / ROUND * ROUND + m % RUN_M * LANES_M + m / RUN_M % LANES_M;
}
// The inverse of kept_row().
device_inline int row_kept_at(int row) {
  constexpr int ROUND = LANES_M * RUN_M;
  return row / ROUND * ROUND + row % LANES_M * RUN_M + row / LANES_M % RUN_M;
}

template <int PITCH>
device_inline void load_fragments_m(Fragments& to, const byte_t* lane_row) {
#pragma unroll
  for (int i = 0; i < PRODUCTS_M; ++i) {
    const byte_t* const row = lane_row + i * (16 * PITCH);
    if constexpr (BY_MATRICES) {
      load_matrices(to.m[i], row);
    } else {
      load_pair(to.m[i][0], to.m[i][1], row);
      load_pair(to.m[i][2], to.m[i][3], row + 8 * PITCH);
    }
  }
}
// offsets: the offsets of the lane's rows in the tile.
device_inline void load_fragments_m(Fragments& to, const byte_t* tile,
                                    const u32 (&offsets)[READS_M]) {
#pragma unroll
  for (int i = 0; i < READS_M; ++i) {
    if constexpr (BY_MATRICES)
      load_matrices(to.m[i], tile + offsets[i]);
    else
      load_pair(to.m[i / 2][i % 2 * 2], to.m[i / 2][i % 2 * 2 + 1], tile + offsets[i]);
  }
}
// Loads the operands of products from j on, for the lane's column.
device_inline void load_columns(Fragments& to, int j, const byte_t* column) {
  if constexpr (BY_MATRICES) {
    u32 both[4];
    load_matrices(both, column);
    to.n[j][0] = both[0], to.n[j][1] = both[1];
    if (j + 1 < PRODUCTS_N) to.n[j + 1][0] = both[2], to.n[j + 1][1] = both[3];
  } else {
    load_pair(to.n[j][0], to.n[j][1], column);
  }
}
// offsets: the offsets of the lane's columns in the tile.
device_inline void load_fragments_n(Fragments& to, const byte_t* tile,
                                    const u32 (&offsets)[READS_N]) {
#pragma unroll
  for (int j = 0; j < PRODUCTS_N; j += READ_PRODUCTS)
    load_columns(to, j, tile + offsets[j / READ_PRODUCTS]);
}

// ---- rows along the outer index, PITCH bytes from one step of the reduction to the next -------

// The layouts that the functions below can read. For 16-bit elements, a thread's rows are 8 apart;
// for wider ones, one read takes RUN_M neighbouring rows.
constexpr bool TRANSPOSABLE = sizeof(element_t) == 2   ? RUN_M == 1
                              : sizeof(element_t) == 4 ? RUN_M == 2 || RUN_M == 4
                                                       : RUN_M == 2;

// The offset, from the warp's first row, at which a lane reads for the warp's first product.
template <int PITCH>
device_inline int transposed_place_m(int lane) {
  if constexpr (sizeof(element_t) == 2)
    return (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 16;
  else
    return lane % 4 * PITCH + lane / 4 * (RUN_M * ELEMENT_BYTES);
}
template <int PITCH>
device_inline void load_transposed_m(Fragments& to, const byte_t* lane_place) {
  if constexpr (sizeof(element_t) == 2) {
#pragma unroll
    for (int i = 0; i < PRODUCTS_M; ++i) load_matrices_transposed(to.m[i], lane_place + i * 32);
  } else {
    constexpr int PARTS = WORD_BYTES / 4;  // words of an element
    struct alignas(WORD_BYTES * RUN_M) Run {
      u32 part[RUN_M * PARTS];
    };
#pragma unroll
    for (int four = 0; four < FRAGMENT_K / 4; ++four)
#pragma unroll
      for (int i = 0; i < THREAD_M; i += RUN_M) {
        const Run run = *reinterpret_cast<const Run*>(lane_place + four * (4 * PITCH) +
                                                      row_step(i) * ELEMENT_BYTES);
#pragma unroll
        for (int j = 0; j < RUN_M * PARTS; ++j)
          to.m[(i * PARTS + j) / (2 * PARTS)][2 * four + (i * PARTS + j) % (2 * PARTS)] =
              run.part[j];
      }
  }
}

// The same for columns, where a lane reads one at a time, from the warp's first column.
template <int PITCH>
device_inline int transposed_place_n(int lane) {
  if constexpr (sizeof(element_t) == 2)
    return lane % 16 * PITCH + lane / 16 * 16;
  else
    return lane % 4 * PITCH + lane / 4 * 4;
}
template <int PITCH>
device_inline void load_transposed_n(Fragments& to, const byte_t* lane_place) {
  static_assert(PITCH > 0 && PRODUCTS_N % 2 == 0);
  if constexpr (sizeof(element_t) == 2) {
#pragma unroll
    for (int j = 0; j < PRODUCTS_N; j += 2) {
      u32 both[4];
      load_matrices_transposed(both, lane_place + j * 16);
      to.n[j][0] = both[0], to.n[j][1] = both[1];
      to.n[j + 1][0] = both[2], to.n[j + 1][1] = both[3];
    }
  } else {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j)
        to.n[j][half] = *reinterpret_cast<const u32*>(lane_place + half * (4 * PITCH) + j * 32);
  }
}

// ---- products ---------------------------------------------------------------------------------

template <int COUNT>
device_inline void floats_of(float (&to)[COUNT], const u32 (&bits)[COUNT]) {
#pragma unroll
  for (int c = 0; c < COUNT; ++c) to[c] = float_of(bits[c]);
}
template <int COUNT>
device_inline void floats_of(double (&to)[COUNT], const u32 (&bits)[2 * COUNT]) {
#pragma unroll
  for (int c = 0; c < COUNT; ++c) to[c] = double_of(bits[2 * c], bits[2 * c + 1]);
}

// Accumulators, and the products of operands that have been split.
struct FragmentSums : PromotedSums<false> {
  device_inline void multiply_fragments(const Fragments& operands) {
    multiply_fragments(operands, [](int) {});
  }
  // between(i) is called after the products of rows i, to issue other instructions among them.
  template <class Between>
  device_inline void multiply_fragments(const Fragments& operands, const Between& between) {
    compute_t n[PRODUCTS_N][LANE_N];
    if constexpr (sizeof(element_t) >= 4) {
#pragma unroll
      for (int j = 0; j < PRODUCTS_N; ++j) floats_of(n[j], operands.n[j]);
    }
    multiply_rows<0>(operands, n, between);
  }

 private:
  // Multiplies rows I and the ones after them.
  template <int I, class Between>
  device_inline void multiply_rows(const Fragments& operands,
                                   const compute_t (&n)[PRODUCTS_N][LANE_N],
                                   const Between& between) {
    if constexpr (sizeof(element_t) == 2)
      mma_16x8x16<element_t, I>(registers, operands.m[I], operands.n);
    else
      multiply_row<I>(operands, n);
    between(I);
    if constexpr (I + 1 < PRODUCTS_M) multiply_rows<I + 1>(operands, n, between);
  }
  template <int I>
  device_inline void multiply_row(const Fragments& operands, const double (&n)[PRODUCTS_N][1]) {
    double m[2];
    floats_of(m, operands.m[I]);
    mma_16x8x4<I>(registers, m, n);
  }
  template <int I>
  device_inline void multiply_row(const Fragments& operands, const float (&n)[PRODUCTS_N][2]) {
    float m[4], lo[4];
    floats_of(m, operands.m[I]);
    if constexpr (SPLIT) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const HiLo parts = SPLIT_ROWS_AHEAD ? HiLo{m[c], operands.lo_m[I][c]} : split(m[c]);
        m[c] = parts.hi, lo[c] = parts.lo;
      }
      mma_16x8x8<I>(registers, lo, n);
      mma_16x8x8<I>(registers, m, operands.lo_n);
    }
    mma_16x8x8<I>(registers, m, n);
  }
};
