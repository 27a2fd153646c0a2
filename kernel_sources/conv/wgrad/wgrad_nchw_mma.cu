// Filter gradient by mma.sync for an x that is loaded as lines of contiguous elements of a row:
// NCHW, or channels-last with few channels, which are columns of a row like its taps. An implicit
// matrix product over the pixels of dy.
//
// A block computes a TILE_M (filters) x TILE_N (columns: channels and taps) tile of dw, band by
// band of pixels (band.cuh). While the fragments of one stage are multiplied, the next stage is
// loaded. ldmatrix reads filters (f64: element by element); columns of x are read word by word,
// each at its own offset (word_reader.cuh). The reduction is long and tiles are few, so the blocks
// of a cluster share it.
#include "conv/mma/word_reader.cuh"
#include "conv/wgrad/nchw_stages.cuh"
#include "target/shared_memory.cuh"

constexpr int TABLE_AT = 2 * STAGE_BYTES;
constexpr int SUM_BYTES = static_cast<int>(sizeof(compute_t));
constexpr int OPERAND_BYTES = TABLE_AT + STAGE_WORDS * 8, LINE_BYTES = THREADS * LINE * SUM_BYTES;
constexpr int MEMORY_BYTES = OPERAND_BYTES > LINE_BYTES ? OPERAND_BYTES : LINE_BYTES;
static_assert(STAGES == 2 && SLICES == 1 && (FILTERS_INNER ? TRANSPOSABLE : RUN_M == 1));
static_assert(PROMOTE % 2 == 0, "fragments take turns");

using Reader = WordReader<GRADIENT_PITCH, FILTERS_INNER, FILLED_UP && !SPLIT, ROW_FOURS,
                          STRIDE_H * X_ROW * WORD_BYTES>;

KILN_KERNEL(wgrad_nchw_mma, THREADS, MIN_BLOCKS, WgradParams, params) {
  FragmentSums sums;
  byte_t* const memory = shared_array<byte_t, MEMORY_BYTES>(0);
  ReductionWord* const table = reinterpret_cast<ReductionWord*>(memory + TABLE_AT);
#pragma unroll 1
  for (int i = thread_x(); i < STAGE_WORDS; i += THREADS) table[i] = pixel_entry(i);

  const BandShare share(params);
  const WgradTile tile(cluster_number());
  const TapBox taps = all_taps();
  const int first_channel = taps.decode(tile.first_column).c;
  StageLoader loader(tile, params, first_channel, memory);

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const Position warp{position.m - lane / LANES_N * RUN_M, position.n - lane % LANES_N * RUN_N};
  Reader reader(memory, warp.m, lane, table);
#pragma unroll
  for (int j = 0; j < PRODUCTS_N; ++j) {
    const int column = tile.first_column + Reader::column(warp.n, lane, j);
    const bool exists = REDUCTION % TILE_N == 0 || column < REDUCTION;
    reader.set_column(
        j, column_place(taps.decode(exists ? column : tile.first_column), first_channel));
  }

  sums.start();
  const auto landed = [](int) { block_barrier(); };
  StageWalk walk(share, loader);
  walk.next_stage(landed);
  // A stage's last share is stored one step after it was loaded, so the first stage takes as many
  // steps, too.
  loader.load_step();

  // A fragment is read while the one before is multiplied.
  Fragments fragments[2];
  const auto read = [&](Fragments& to, int fragment) {
    reader.load(to, walk.stage, memory + walk.stage + GRADIENT_BYTES, fragment,
                FILLED_UP ? walk.pixels : Reader::ALL_WORDS);
  };
  if (share.bands > 0) {
    read(fragments[0], 0);
    fragments[0].split_tf32();
  }
  int fragment = 0;  // the current fragment of the stage
  const auto multiply = [&](int turn) {
    const bool ends = ++fragment == STAGE_FRAGMENTS;
    if (ends) walk.next_stage(landed), fragment = 0;
    read(fragments[1 - turn], fragment);
    sums.multiply_fragments(fragments[turn], [&](int row) { loader.load_among(row); });
    fragments[1 - turn].split_tf32();
    loader.end_step();
  };
  // Promotions stay out of the innermost loop, where they would delay products.
  const u32 count = share.bands * STAGE_FRAGMENTS;
  u32 k = 0;
#pragma unroll 1
  while (k < count) {
    const u32 stop = PROMOTE > 0 && count - k > PROMOTE ? k + PROMOTE : count;
#pragma unroll 1
    for (;;) {
      multiply(0);
      if (++k == stop) break;
      multiply(1);
      if (++k == stop) break;
    }
    sums.end_run(k < count);
  }

  reduce_and_store<MEMORY_BYTES / SUM_BYTES>(sums, reinterpret_cast<compute_t*>(memory),
                                             GradientStore<DW_RUN>(tile, position, taps, params));
}
