// A tile's sums on their way out through shared memory, so that neighbours in the output are stored
// by neighbouring threads, STORE_VECTOR rows by each where they lie side by side.
//
// A tile's reduction may be shared by the blocks of a cluster, which take a run of steps each. In
// the end each of them adds up, by rank, all parts of its share of the outputs.
#pragma once

#include "conv/gather_output.cuh"
#include "conv/warpgroup_sums.cuh"

// Sums of a column follow each other, or of a row; either way a warp's 8 rows of 4 columns lie in
// different banks.
constexpr int STAGED_PITCH = LINES_ALONG_M ? TILE_M + 4 : (TILE_N + 31) / 32 * 32 + 8;
constexpr int STAGED = (LINES_ALONG_M ? TILE_N : TILE_M) * STAGED_PITCH;
constexpr int STAGED_BYTES = (STAGED + TILE_N) * static_cast<int>(sizeof(compute_t));
static_assert(TILE_M % 16 == 0 && sizeof(out_offset_t) == sizeof(int));

device_inline constexpr int staged_place(int m, int n) {
  return LINES_ALONG_M ? n * STAGED_PITCH + m : m * STAGED_PITCH + n;
}

// From a thread's first sum on.
static_assert(COLUMNS_LEFT ? RUN_N <= 2 : RUN_M <= 2 && RUN_N == 2 * VECTOR_N);
struct StagedPlace {
  static constexpr int RUN = RIGHT_RUN;
  device_inline static constexpr int of(int l, int r, int c) {
    return staged_place(row_step(sum_row(l, r, c)), column_step(sum_column(l, r, c)));
  }
};

// `stage`: STAGED_BYTES of shared memory that no thread of the block reads or writes any more.
// Behind the sums lie the places of the tile's pixels in the output, each worked out once for all
// rows; -1 where there is none.
template <class Tile>
device_inline void stage_and_store(const WarpgroupSums& sums, Position position, const Tile& tile,
                                   const GatherParams& params, compute_t* stage) {
  sums.registers.put<StagedPlace>(stage + staged_place(position.m, position.n));
  out_offset_t* const places = reinterpret_cast<out_offset_t*>(stage + STAGED);
#pragma unroll 1
  for (int n = thread_x(); n < TILE_N; n += THREADS) {
    places[n] = tile.inside(n) ? output_offset(tile.at(n)) : -1;
  }
  const bool shared = cluster_size() > 1;
  if (shared)
    cluster_barrier();
  else
    block_barrier();

  const Epilogue epilogue =
      epilogue_at(params, static_cast<i64>(tile.image), static_cast<i64>(tile.group) * ROWS, 0);
  const GatherSums whole{params, static_cast<i64>(tile.image), static_cast<i64>(tile.group), 0};
  // Rows of a thread at a time: side by side, or each on a line of the warp's.
  constexpr int VECTOR_ROWS = OUTPUT_VECTOR || !LINES_ALONG_M ? STORE_VECTOR : 1;
  constexpr int NEXT_ROW = LINES_ALONG_M ? 1 : STAGED_PITCH;
  static_assert(LINES_ALONG_M || !OUTPUT_VECTOR);
  const bool aligned = (reinterpret_cast<u64>(epilogue.out) | reinterpret_cast<u64>(epilogue.z)) %
                           (sizeof(element_t) * VECTOR_ROWS) ==
                       0;
  constexpr int TILE_VECTORS = TILE_M / VECTOR_ROWS;
#pragma unroll 1
  for (int i = cluster_rank() * THREADS + thread_x(); i < TILE_VECTORS * TILE_N;
       i += static_cast<int>(cluster_size()) * THREADS) {
    const int n = LINES_ALONG_M ? i / TILE_VECTORS : i % TILE_N;
    const int m = (LINES_ALONG_M ? i % TILE_VECTORS : i / TILE_N) * VECTOR_ROWS;
    const int row = tile.first_row + m;
    if (places[n] < 0 || row >= ROWS) continue;
    compute_t values[VECTOR_ROWS];
    const compute_t* const mine = stage + staged_place(m, n);
#pragma unroll
    for (int v = 0; v < VECTOR_ROWS; ++v) values[v] = shared ? compute_t(0) : mine[v * NEXT_ROW];
    // Asked here, or the compiler would write the whole loop twice.
    if (from_here(cluster_size()) > 1) {
      // Two at a time, for another multiprocessor's take long.
#pragma unroll 1
      for (u32 part = 0; part < cluster_size(); part += 2) {
        const bool two = part + 1 < cluster_size();
        const compute_t* const theirs = cluster_shared(mine, part);
        const compute_t* const next = cluster_shared(mine, two ? part + 1 : part);
        compute_t both[2][VECTOR_ROWS];
#pragma unroll
        for (int v = 0; v < VECTOR_ROWS; ++v)
          both[0][v] = theirs[v * NEXT_ROW], both[1][v] = two ? next[v * NEXT_ROW] : compute_t(0);
#pragma unroll
        for (int v = 0; v < VECTOR_ROWS; ++v) values[v] = values[v] + both[0][v] + both[1][v];
      }
    }
    u32 existing = 0;
#pragma unroll
    for (int v = 0; v < VECTOR_ROWS; ++v) existing |= static_cast<u32>(row + v < ROWS) << v;
    const out_offset_t at = places[n] + static_cast<out_offset_t>(row) * OUT_STRIDE_ROW;
    const auto store_one = [&](int v, compute_t sum) {
      const out_offset_t one = at + static_cast<out_offset_t>(v) * OUT_STRIDE_ROW;
      const out_offset_t z_at = Z_LIKE_OUT ? one
                                           : static_cast<out_offset_t>(row + v) * Z_STRIDE_ROW +
                                                 residual_offset(tile.at(n));
      epilogue.store_one(one, z_at, sum, epilogue.bias_of(row + v));
    };
    if (!scale_back(values, existing)) {
#pragma unroll 1
      for (int v = 0; v < VECTOR_ROWS && row + v < ROWS; ++v) {
        const compute_t sum = whole.add_up(tile.at(n), row + v);
#pragma unroll
        for (int k = 0; k < VECTOR_ROWS; ++k) values[k] = k == v ? sum : values[k];
      }
    }
    if (OUTPUT_VECTOR && aligned && row + VECTOR_ROWS <= ROWS) {
      compute_t bias[VECTOR_ROWS];
#pragma unroll
      for (int v = 0; v < VECTOR_ROWS; ++v) bias[v] = epilogue.bias_of(row + v);
      epilogue.store_vector(at, values, bias);
    } else {
#pragma unroll
      for (int v = 0; v < VECTOR_ROWS; ++v)
        if (row + v < ROWS) store_one(v, values[v]);
    }
  }
  if (shared) cluster_barrier();  // no block leaves while another may read its sums
}
