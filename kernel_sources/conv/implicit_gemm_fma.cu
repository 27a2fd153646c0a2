// Forward convolution as an implicit matrix product on the FMA units.
//
// A thread block computes a TILE_M (filters) x TILE_N (pixels) tile of y. TILE_K rows of the two
// lowered operands at a time are gathered straight into shared memory, STAGES of them in flight;
// each of 256 threads accumulates THREAD_M x THREAD_N sums in registers. A cluster of blocks may
// share one tile: each takes a part of the reduction, and the block of rank 0 adds the parts up in
// the order of their ranks, so the bits never depend on timing.
#include "conv/epilogue.cuh"
#include "conv/forward_params.h"
#include "conv/tile_loader.cuh"
#include "target/cluster.cuh"
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = 256;
constexpr int K_TILES = (REDUCTION + TILE_K - 1) / TILE_K;
constexpr int STAGE_M = TILE_K * PITCH_M;  // elements
constexpr int STAGE_N = TILE_K * PITCH_N;

// A warp is 4 x 8 threads; a thread's rows and columns are runs of VECTOR, 4 (8) runs apart, so
// that a warp's 16-byte reads of an operand row are free of bank conflicts.
constexpr int RUNS_M = THREAD_M / VECTOR;
constexpr int RUNS_N = THREAD_N / VECTOR;
constexpr int WARP_M = 4 * THREAD_M;
constexpr int WARP_N = 8 * THREAD_N;
static_assert((TILE_M / WARP_M) * (TILE_N / WARP_N) * 32 == THREADS);
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0 && TILE_K % 8 == 0);

struct Position {  // of a thread's first element in the tile
  int m, n;
};
device_inline Position thread_position(int thread) {
  constexpr int WARPS_N = TILE_N / WARP_N;
  const int warp = thread / 32, lane = thread % 32;
  return {warp / WARPS_N * WARP_M + lane / 8 * VECTOR, warp % WARPS_N * WARP_N + lane % 8 * VECTOR};
}

struct alignas(16) Run {
  compute_t element[VECTOR];
};

struct Fragment {  // one row of each operand
  compute_t m[THREAD_M], n[THREAD_N];

  device_inline void load(const compute_t* tile_m, const compute_t* tile_n, int k) {
#pragma unroll
    for (int i = 0; i < RUNS_M; ++i) {
      const Run run = *reinterpret_cast<const Run*>(tile_m + k * PITCH_M + i * 4 * VECTOR);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) m[i * VECTOR + j] = run.element[j];
    }
#pragma unroll
    for (int i = 0; i < RUNS_N; ++i) {
      const Run run = *reinterpret_cast<const Run*>(tile_n + k * PITCH_N + i * 8 * VECTOR);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) n[i * VECTOR + j] = run.element[j];
    }
  }
};

struct Accumulator {
  compute_t sum[THREAD_M][THREAD_N];

  device_inline Accumulator() {
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) sum[i][j] = 0;
  }

  device_inline void multiply(const Fragment& fragment) {
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) sum[i][j] += fragment.m[i] * fragment.n[j];
  }

  // Adds one stage. The next row's operands are on their way while one row is multiplied.
  device_inline void multiply_tile(const compute_t* tile_m, const compute_t* tile_n) {
    Fragment fragment[2];
    fragment[0].load(tile_m, tile_n, 0);
#pragma unroll
    for (int k = 0; k < TILE_K; ++k) {
      if (k + 1 < TILE_K) fragment[(k + 1) % 2].load(tile_m, tile_n, k + 1);
      multiply(fragment[k % 2]);
    }
  }
};

// The epilogue walks a thread's sums line by line: rows (one filter, THREAD_N pixels), or columns
// (one pixel, THREAD_M filters) where y has its channels inside. The loop is rolled, which keeps
// the generated code and its compile time small: registers cannot be indexed, so the line at hand
// is always the first, and the others move up.
constexpr int LINES = OUTPUT_CHANNELS_INNER ? THREAD_N : THREAD_M;
constexpr int LINE = OUTPUT_CHANNELS_INNER ? THREAD_M : THREAD_N;

device_inline void take_line(Accumulator& sums, compute_t (&line)[LINE]) {
#pragma unroll
  for (int i = 0; i < LINE; ++i) line[i] = OUTPUT_CHANNELS_INNER ? sums.sum[i][0] : sums.sum[0][i];
  if constexpr (OUTPUT_CHANNELS_INNER) {
#pragma unroll
    for (int j = 0; j + 1 < THREAD_N; ++j)
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) sums.sum[i][j] = sums.sum[i][j + 1];
  } else {
#pragma unroll
    for (int i = 0; i + 1 < THREAD_M; ++i)
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) sums.sum[i][j] = sums.sum[i + 1][j];
  }
}

static_assert(LINE * THREADS <= STAGES * STAGE_N);  // the exchange fits

// Rank 0 gains the line's sums of the other blocks of the cluster, in the order of their ranks,
// through shared memory. The stages of the main loop are free by then.
device_inline void reduce_cluster(compute_t (&line)[LINE], compute_t* exchange, u32 rank,
                                  u32 blocks) {
  const int thread = thread_x();
  if (rank != 0) {
#pragma unroll
    for (int i = 0; i < LINE; ++i) exchange[i * THREADS + thread] = line[i];
  }
  cluster_barrier();
  if (rank == 0) {
#pragma unroll 1
    for (u32 other = 1; other < blocks; ++other) {
      const compute_t* theirs = cluster_shared(exchange, other);
#pragma unroll
      for (int i = 0; i < LINE; ++i) line[i] += theirs[i * THREADS + thread];
    }
  }
  cluster_barrier();  // only then may the exchange be written again, or its block leave
}

// Where a thread's sums go: a line has a place of its own, and its elements follow at offsets that
// are the same for all lines.
struct LineStore {
  Position position;
  int first_filter;
  u32 first_pixel, last_pixel;
  offset_t along[LINE];
  u32 valid;  // bit i: element i of a line lies in y

  device_inline LineStore(Position at, int filter, u32 first, u32 last)
      : position(at), first_filter(filter), first_pixel(first), last_pixel(last), valid(0) {
#pragma unroll
    for (int i = 0; i < LINE; ++i) {
      const int in_tile = i / VECTOR * (OUTPUT_CHANNELS_INNER ? 4 : 8) * VECTOR + i % VECTOR;
      bool in_y;
      if constexpr (OUTPUT_CHANNELS_INNER) {
        const int k = first_filter + position.m + in_tile;
        along[i] = static_cast<offset_t>(k) * Y_STRIDE_K;
        in_y = k < FILTERS;
      } else {
        const u32 pixel = first_pixel + position.n + in_tile;
        // Within a vector that is stored whole, the first offset is all that is needed.
        along[i] = OUTPUT_VECTOR && i % VECTOR != 0 ? along[i / VECTOR * VECTOR] + i % VECTOR
                                                    : output_offset(decode_pixel(pixel));
        in_y = pixel <= last_pixel;
      }
      valid |= static_cast<u32>(in_y) << i;
    }
  }

  device_inline void store(const compute_t (&line)[LINE], int index, const Epilogue& epilogue,
                           bool aligned) const {
    const int in_tile = index / VECTOR * (OUTPUT_CHANNELS_INNER ? 8 : 4) * VECTOR + index % VECTOR;
    offset_t base;
    if constexpr (OUTPUT_CHANNELS_INNER) {
      const u32 pixel = first_pixel + position.n + in_tile;
      if (pixel > last_pixel) return;
      base = output_offset(decode_pixel(pixel));
    } else {
      const int k = first_filter + position.m + in_tile;
      if (k >= FILTERS) return;
      base = static_cast<offset_t>(k) * Y_STRIDE_K;
    }
#pragma unroll
    for (int run = 0; run < LINE; run += VECTOR) {
      constexpr u32 WHOLE = (1u << VECTOR) - 1;
      if (OUTPUT_VECTOR && aligned && (valid >> run & WHOLE) == WHOLE) {
        compute_t values[VECTOR];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) values[i] = line[run + i];
        epilogue.store_vector(base + along[run], values);
      } else {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
          if (valid >> (run + i) & 1) epilogue.store_one(base + along[run + i], line[run + i]);
      }
    }
  }
};

KILN_KERNEL(implicit_gemm_fma, 256, MIN_BLOCKS, ForwardParams, params) {
  compute_t* const stages_m = shared_array<compute_t, STAGES * STAGE_M>(0);
  compute_t* const stages_n =
      shared_array<compute_t, STAGES * STAGE_N>(STAGES * STAGE_M * sizeof(compute_t));

  // Blocks in order: parts of the reduction, tiles of filters, groups, tiles of pixels.
  const u32 rank = cluster_rank(), parts = cluster_size();
  const u32 tile = block_x() / parts;
  const u32 pixel_tile = DIVIDE(DIV_TILES, tile);
  const u32 group_tile = tile - pixel_tile * DIV_TILES;
  const u32 group = DIVIDE(DIV_TILES_M, group_tile);
  const int first_filter = (group_tile - group * DIV_TILES_M) * TILE_M;

  // From the first image of the tile on, 32 bits are enough to count pixels.
  const u64 first = static_cast<u64>(pixel_tile) * TILE_N;
  const u64 image = DIVIDE(BLOCK_DIV_OPQ, first);
  const u32 first_pixel = static_cast<u32>(first - image * DIV_OPQ);
  const u64 pixels_left = static_cast<u64>(params.pixels) - first;
  const u32 last_pixel =
      first_pixel + static_cast<u32>(pixels_left < TILE_N ? pixels_left : TILE_N) - 1;

  const element_t* const x = static_cast<const element_t*>(params.x) +
                             static_cast<i64>(image) * X_STRIDE_N +
                             static_cast<i64>(group) * (static_cast<i64>(CHANNELS) * X_STRIDE_C);
  const element_t* const w = static_cast<const element_t*>(params.w) +
                             static_cast<i64>(group) * (static_cast<i64>(FILTERS) * W_STRIDE_K);
  PixelLoader pixels(x, first_pixel, last_pixel);
  FilterLoader filters(w, first_filter);

  const int k_tiles_per_part = (K_TILES + parts - 1) / parts;
  const int k_begin = rank * k_tiles_per_part;
  const int k_end = k_begin + k_tiles_per_part < K_TILES ? k_begin + k_tiles_per_part : K_TILES;

  constexpr int AHEAD = STAGES - 1;  // tiles in flight
#pragma unroll 1
  for (int i = 0; i < AHEAD; ++i) {
    if (k_begin + i < k_end) {
      pixels.load(k_begin + i, stages_n + i * STAGE_N);
      filters.load(k_begin + i, stages_m + i * STAGE_M);
      pixels.store(stages_n + i * STAGE_N);
      filters.store(stages_m + i * STAGE_M);
    }
    async_commit();
  }

  const Position position = thread_position(thread_x());
  Accumulator sums;
  int slot = 0, next_slot = AHEAD;
#pragma unroll 1
  for (int k_tile = k_begin; k_tile < k_end; ++k_tile) {
    async_wait<AHEAD - 1>();
    block_barrier();  // tile k_tile has landed for all; the slot read last turn is free for all
    const bool more = k_tile + AHEAD < k_end;
    if (more) {
      pixels.load(k_tile + AHEAD, stages_n + next_slot * STAGE_N);
      filters.load(k_tile + AHEAD, stages_m + next_slot * STAGE_M);
    }
    async_commit();
    sums.multiply_tile(stages_m + slot * STAGE_M + position.m,
                       stages_n + slot * STAGE_N + position.n);
    if (more) {
      pixels.store(stages_n + next_slot * STAGE_N);
      filters.store(stages_m + next_slot * STAGE_M);
    }
    slot = slot + 1 == STAGES ? 0 : slot + 1;
    next_slot = next_slot + 1 == STAGES ? 0 : next_slot + 1;
  }

  element_t* const y = static_cast<element_t*>(params.y) + static_cast<i64>(image) * Y_STRIDE_N +
                       static_cast<i64>(group) * (static_cast<i64>(FILTERS) * Y_STRIDE_K);
  const Epilogue epilogue{y, static_cast<compute_t>(params.alpha),
                          static_cast<compute_t>(params.beta)};
  const bool aligned = reinterpret_cast<u64>(y) % (sizeof(element_t) * VECTOR) == 0;
  const LineStore target(position, first_filter, first_pixel, last_pixel);
  if (parts > 1) cluster_barrier();  // no block reads its stages any more
#pragma unroll 1
  for (int index = 0; index < LINES; ++index) {
    compute_t line[LINE];
    take_line(sums, line);
    if (parts > 1) reduce_cluster(line, stages_n, rank, parts);
    if (rank == 0) target.store(line, index, epilogue, aligned);
  }
}
