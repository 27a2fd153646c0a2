// out = alpha * in + beta * out for operands with different innermost dimensions: A is the
// output's, B the input's. A block moves a TILE_A x TILE_B tile through shared memory. It reads
// vectors along B and writes vectors along A.
//
// The tile's rows run along B, as in the input. Units of 16 bytes are swizzled within 128 bytes,
// differently for each vector of rows. A warp stores whole neighboring units, and reads columns of
// several vectors of rows at a time, which are in different units, to avoid bank conflicts.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "pointwise/pointwise_params.h"
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int UNIT = 16 / sizeof(IN0_t);  // elements of a unit
constexpr int RUNS_B = TILE_B / VECTOR_B;
static_assert(PITCH % (8 * UNIT) == 0 && PITCH >= TILE_B);

device_inline int tile_index(int a, int b) {
  const int unit = b / UNIT ^ (a / VECTOR_A & 7);
  return a * PITCH + unit * UNIT + b % UNIT;
}

// A block's tile: its first position along both axes, and the operands' addresses there.
struct Tile {
  int a, b;
  const IN0_t* in;
  OUT_t* out;

  // Block numbers count tiles along A fastest, then along B, then the other axes and images.
  device_inline explicit Tile(const PointwiseParams& params) {
    u32 rest = DIVIDE(DIV_TILES_A, block_x());
    a = (block_x() - rest * DIV_TILES_A) * TILE_A;
    u32 next = DIVIDE(DIV_TILES_B, rest);
    b = (rest - next * DIV_TILES_B) * TILE_B;
    rest = DIVIDE(DIV_SIZE_1, next);
    const u32 a1 = next - rest * DIV_SIZE_1;
    const u32 n = DIVIDE(DIV_SIZE_0, rest);
    const u32 a0 = rest - n * DIV_SIZE_0;
    in = static_cast<const IN0_t*>(params.in[0]) + static_cast<i64>(n) * IN0_STRIDE_N +
         static_cast<i64>(a0) * IN0_STRIDE_0 + static_cast<i64>(a1) * IN0_STRIDE_1 +
         static_cast<i64>(a) * IN0_STRIDE_A + b;
    out = static_cast<OUT_t*>(params.out) + static_cast<i64>(n) * OUT_STRIDE_N +
          static_cast<i64>(a0) * OUT_STRIDE_0 + static_cast<i64>(a1) * OUT_STRIDE_1 +
          static_cast<i64>(b) * OUT_STRIDE_B + a;
  }
};

// Performs COUNT of a thread's reads, from read `number` on.
template <int COUNT>
device_inline void read(const Tile& tile, bool aligned, int number, IN0_t* shared) {
  Pack<IN0_t, VECTOR_B> packs[COUNT];
  const auto place = [&](int i, int& a, int& b) {
    const int at = (number + i) * THREADS + thread_x();
    a = at / RUNS_B, b = at % RUNS_B * VECTOR_B;
    return (TILE_A * RUNS_B % THREADS == 0 || a < TILE_A) && tile.a + a < SIZE_A &&
           tile.b + b < SIZE_B;
  };
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    int a, b;
    if (place(i, a, b))
      packs[i] =
          load_pack<VECTOR_B>(tile.in + static_cast<offset_t>(a) * IN0_STRIDE_A + b, aligned);
  }
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    int a, b;
    if (place(i, a, b))
      *reinterpret_cast<Pack<IN0_t, VECTOR_B>*>(shared + tile_index(a, b)) = packs[i];
  }
}

device_inline void read_tile(const Tile& tile, bool aligned, IN0_t* shared) {
  constexpr int READS = (TILE_A * RUNS_B + THREADS - 1) / THREADS;
  if (aligned || VECTOR_B == 1) {
    read<READS>(tile, true, 0, shared);
  } else {  // unaligned: one vector at a time, because single elements take too many registers
#pragma unroll 1
    for (int i = 0; i < READS; ++i) read<1>(tile, false, i, shared);
  }
}

// A warp writes LANES_A contiguous vectors at each of LANES_B positions along B.
device_inline void write_tile(const Tile& tile, const PointwiseParams& params,
                              const IN0_t* shared) {
  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  const bool aligned = is_aligned<OUT_t, VECTOR_A>(params.out);
  constexpr int LANES_B = 32 / LANES_A;
  constexpr int GROUPS_A = TILE_A / (VECTOR_A * LANES_A), GROUPS = GROUPS_A * (TILE_B / LANES_B);
  static_assert(TILE_A % (VECTOR_A * LANES_A) == 0 && TILE_B % LANES_B == 0);
  const int lane = thread_x() % 32, warp = thread_x() / 32;
#pragma unroll 4
  for (int group = warp; group < GROUPS; group += WARPS) {
    const int a = (group % GROUPS_A * LANES_A + lane % LANES_A) * VECTOR_A;
    const int b = group / GROUPS_A * LANES_B + lane / LANES_A;
    if (tile.a + a >= SIZE_A || tile.b + b >= SIZE_B) continue;
    OUT_t* const to = tile.out + static_cast<offset_t>(b) * OUT_STRIDE_B + a;
    compute_t result[VECTOR_A];
#pragma unroll
    for (int j = 0; j < VECTOR_A; ++j)
      result[j] = alpha * convert_in<compute_t>(shared[tile_index(a, b) + j * PITCH]);
    if (beta != compute_t(0)) {
      compute_t before[VECTOR_A];
      load_vector(to, aligned, before);
#pragma unroll
      for (int j = 0; j < VECTOR_A; ++j) result[j] += beta * before[j];
    }
    store_vector(to, aligned, result);
  }
}

KILN_KERNEL(transpose, 256, MIN_BLOCKS, PointwiseParams, params) {
  IN0_t* const shared = shared_array<IN0_t, TILE_A * PITCH>(0);
  const Tile tile(params);
  read_tile(tile, is_aligned<IN0_t, VECTOR_B>(params.in[0]), shared);
  block_barrier();
  write_tile(tile, params, shared);
}
