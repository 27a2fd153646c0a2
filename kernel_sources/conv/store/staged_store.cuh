// Stores a tile's accumulators through shared memory, so that neighbouring threads store
// neighbouring elements of the output: STORE_VECTOR contiguous rows each if rows are contiguous.
//
// The blocks of a cluster may share a tile's reduction, consecutive steps each. At the end, each
// block adds up all partial sums of its share of the outputs, by rank.
#pragma once

#include "conv/mma/promoted_sums.cuh"
#include "conv/store/gather_output.cuh"

// The sums of a column are contiguous in the stage or, without LINES_ALONG_M, those of a row.
// Either way, 8 rows by 4 columns are in 32 different banks; where a lane's rows or columns are two
// apart (RUN_M, RUN_N), at most two lanes share a bank.
constexpr int STAGED_PITCH = LINES_ALONG_M ? TILE_M + 4 : (TILE_N + 31) / 32 * 32 + 8;
constexpr int STAGED = (LINES_ALONG_M ? TILE_N : TILE_M) * STAGED_PITCH;
constexpr int STAGED_BYTES = (STAGED + TILE_N) * static_cast<int>(sizeof(compute_t));
static_assert(TILE_M % 16 == 0 && TILE_N % 4 == 0 && STAGED_PITCH % 4 == 0 &&
              sizeof(out_offset_t) == sizeof(int));

device_inline constexpr int staged_place(int m, int n) {
  return LINES_ALONG_M ? n * STAGED_PITCH + m : m * STAGED_PITCH + n;
}

// The offset of a sum in the stage from the thread's first sum.
static_assert(COLUMNS_LEFT ? RUN_N <= 2 : RUN_N == 2 * VECTOR_N);
struct StagedPlace {
  static constexpr int LEFT_RUN = COLUMNS_LEFT || RUN_M < 2 ? 1 : RUN_M / 2, RUN = RIGHT_RUN;
  device_inline static constexpr int of(int l, int r, int c) {
    return staged_place(row_step(sum_row(l, r, c)), column_step(sum_column(l, r, c)));
  }
};

// Adds up all blocks' sums of some lines, by rank, into this block's stage. Many loads are in
// flight at a time, because those from another multiprocessor take long.
device_inline void add_parts(compute_t* stage, int first_line, int end_line) {
  struct alignas(16) Four {
    compute_t sum[4];
  };
  // A thread takes the same four columns of every APART-th line; threads beyond whole lines are
  // idle.
  constexpr int LINE_FOURS = (LINES_ALONG_M ? TILE_M : TILE_N) / 4;
  constexpr int APART = THREADS / LINE_FOURS;
  constexpr int LINES_AT_ONCE = 2, PARTS_AT_ONCE = 4;
  static_assert(APART > 0);
  const int thread = static_cast<int>(thread_x());
  if (THREADS % LINE_FOURS != 0 && thread >= APART * LINE_FOURS) return;
#pragma unroll 1
  for (int line = first_line + thread / LINE_FOURS; line < end_line;
       line += LINES_AT_ONCE * APART) {
    compute_t* const mine = stage + (line * STAGED_PITCH + thread % LINE_FOURS * 4);
    Four sums[LINES_AT_ONCE] = {};
#pragma unroll 1
    for (u32 part = 0; part < cluster_size(); part += PARTS_AT_ONCE) {
      Four theirs[PARTS_AT_ONCE][LINES_AT_ONCE] = {};
#pragma unroll
      for (u32 p = 0; p < PARTS_AT_ONCE; ++p) {
        if (part + p >= cluster_size()) continue;
        const compute_t* const sum = cluster_shared(mine, part + p);
#pragma unroll
        for (int k = 0; k < LINES_AT_ONCE; ++k)
          if (line + k * APART < end_line)
            theirs[p][k] = *reinterpret_cast<const Four*>(sum + k * (APART * STAGED_PITCH));
      }
#pragma unroll
      for (int p = 0; p < PARTS_AT_ONCE; ++p)
#pragma unroll
        for (int k = 0; k < LINES_AT_ONCE; ++k)
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[k].sum[j] += theirs[p][k].sum[j];
    }
#pragma unroll
    for (int k = 0; k < LINES_AT_ONCE; ++k)
      if (line + k * APART < end_line)
        *reinterpret_cast<Four*>(mine + k * (APART * STAGED_PITCH)) = sums[k];
  }
}

// Stores a tile. `stage` is STAGED_BYTES of shared memory that no thread of the block still reads
// or writes. The table of the tile's pixels follows the sums.
template <class Sums, class Tile>
device_inline void stage_and_store(const Sums& sums, Position position, const Tile& tile,
                                   const GatherParams& params, compute_t* stage) {
  sums.registers.template put<StagedPlace>(stage + staged_place(position.m, position.n));
  const PlacesInShared places{reinterpret_cast<out_offset_t*>(stage + STAGED)};
  places.put(tile);
  // Rows that a thread stores at a time: contiguous ones, or one on each line of the warp.
  constexpr bool VECTORS = LINES_ALONG_M && OUTPUT_VECTOR;
  constexpr int VECTOR_ROWS = VECTORS || !LINES_ALONG_M ? STORE_VECTOR : 1;
  constexpr int NEXT_ROW = LINES_ALONG_M ? 1 : STAGED_PITCH;
  constexpr int TILE_VECTORS = TILE_M / VECTOR_ROWS;
  // The lines that the block's threads walk: columns, or groups of VECTOR_ROWS rows.
  constexpr int STORE_LINES = LINES_ALONG_M ? TILE_N : TILE_VECTORS;
  constexpr int LINE_VECTORS = LINES_ALONG_M ? TILE_VECTORS : TILE_N;
  constexpr int STAGE_LINES = LINES_ALONG_M ? 1 : VECTOR_ROWS;
  int line = 0, end = STORE_LINES;
  if constexpr (CLUSTERED) {
    const int share = static_cast<int>(cluster_share(STORE_LINES));
    line = static_cast<int>(cluster_rank()) * share;
    if (line + share < end) end = line + share;
    cluster_barrier();
    add_parts(stage, line * STAGE_LINES, end * STAGE_LINES);
    cluster_barrier();  // no block may exit while another one reads its sums
  } else {
    block_barrier();
  }

  const Epilogue epilogue =
      epilogue_at(params, static_cast<i64>(tile.image), static_cast<i64>(tile.group), 0);
  const GatherSums whole{params, static_cast<i64>(tile.image), static_cast<i64>(tile.group), 0};
  const bool aligned = (reinterpret_cast<u64>(epilogue.out) | reinterpret_cast<u64>(epilogue.z)) %
                           (sizeof(output_t) * VECTOR_ROWS) ==
                       0;
#pragma unroll 1
  for (int i = line * LINE_VECTORS + thread_x(); i < end * LINE_VECTORS; i += THREADS) {
    const int n = LINES_ALONG_M ? i / TILE_VECTORS : i % TILE_N;
    const int m = (LINES_ALONG_M ? i % TILE_VECTORS : i / TILE_N) * VECTOR_ROWS;
    const int row = tile.first_row + m;
    if (!places.inside(n) || row >= ROWS) continue;
    compute_t values[VECTOR_ROWS];
    const compute_t* const sums_at = stage + staged_place(m, n);
#pragma unroll
    for (int v = 0; v < VECTOR_ROWS; ++v) values[v] = sums_at[v * NEXT_ROW];
    u32 existing = 0;
#pragma unroll
    for (int v = 0; v < VECTOR_ROWS; ++v) existing |= static_cast<u32>(row + v < ROWS) << v;
    const out_offset_t at = places.place(n) + static_cast<out_offset_t>(row) * OUT_STRIDE_ROW;
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
    if (VECTORS && aligned && row + VECTOR_ROWS <= ROWS) {
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
}
