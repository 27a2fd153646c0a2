// wgrad_nchw_mma.cu by wgmma, with swapped operands. Operand B, which wgmma reads from shared
// memory, is dy; 3xTF32 splits it there once for each stage. Operand A is columns of x, which lanes
// read word by word into registers: for 16 columns of 8 words a lane makes four reads, which serve
// the products with all filters of the tile.
//
// The warpgroups of a slice share the tile's columns; slices take turns with the fragments of a
// stage.
#include "conv/mma/left_words.cuh"
#include "conv/wgrad/nchw_stages.cuh"
#include "target/shared_memory.cuh"

constexpr int LO_AT = 2 * STAGE_BYTES;  // the lo parts of the current stage's dy
constexpr int TABLE_AT = LO_AT + (SPLIT ? GRADIENT_BYTES : 0);
constexpr int MEMORY_BYTES =
    TABLE_AT + STAGE_WORDS * 8 > THREADS* LINE * 4 ? TABLE_AT + STAGE_WORDS * 8 : THREADS* LINE * 4;
static_assert(STAGES == 2 && RUN_M == 2);
static_assert(PROMOTE % 2 == 0, "fragments take turns");
constexpr int RUN = PROMOTE < STAGE_TURNS ? PROMOTE : STAGE_TURNS;  // most turns of an inner loop
// Bytes from one fragment to the next.
constexpr int FRAGMENT_STEP = PLANES_OF_FILTERS ? FRAGMENT_K * 16 : 2 * RIGHT_PLANE;

KILN_KERNEL(wgrad_nchw_wgmma_swap, THREADS, MIN_BLOCKS, WgradParams, params) {
  WarpgroupSums sums;
  byte_t* const memory = shared_array<byte_t, MEMORY_BYTES>(0);
  ReductionWord* const table = reinterpret_cast<ReductionWord*>(memory + TABLE_AT);
#pragma unroll 1
  for (int i = thread_x(); i < STAGE_WORDS; i += THREADS) table[i] = pixel_entry(i);

  const BandShare share(params);
  const WgradTile tile(cluster_number());
  const TapBox taps = all_taps();
  const int first_channel = taps.decode(tile.first_column).c;
  StageLoader loader(tile, params, first_channel, memory);

  const Position position = left_position(slice_thread());
  LeftReader<FILLED_UP> reader(table);
#pragma unroll
  for (int j = 0; j < THREAD_N; ++j) {
    const int column = tile.first_column + position.n + column_step(j);
    const bool exists = REDUCTION % TILE_N == 0 || column < REDUCTION;
    reader.columns[j] =
        column_place(taps.decode(exists ? column : tile.first_column), first_channel);
  }
  const SharedMatrix gradients =
      PLANES_OF_FILTERS ? SharedMatrix(memory + slice() * FRAGMENT_STEP, 128, FILTERS_PLANE)
                        : SharedMatrix(memory + slice() * FRAGMENT_STEP, RIGHT_PLANE, 128);

  sums.start();
  int in_part = 0;  // turns since the last promotion
  const auto landed = [&](int stage) {
    if (!SPLIT) fence_proxy_async();
    block_barrier();
    if (SPLIT) {
      split_tf32<STAGE_WORDS / 4>(memory + stage, memory + LO_AT);
      fence_proxy_async();
      block_barrier();
    }
  };
  StageWalk walk(share, loader);
  LeftProducts products;
#pragma unroll 1
  for (u32 band = 0; band < share.bands; ++band) {
    walk.next_stage(landed);
    // A fragment is read while the one before is multiplied; the last one reads the first again.
    LeftFragments columns[2];
    const auto read = [&](LeftFragments& to, int turn) {
      reader.load(to, memory + walk.stage + GRADIENT_BYTES, turn * SLICES + slice(),
                  (turn + 1 < STAGE_TURNS ? turn + 1 : 0) * SLICES + slice(),
                  FILLED_UP ? walk.pixels : reader.ALL_WORDS);
    };
    reader.fetch(slice());
    read(columns[0], 0);
    const auto multiply = [&](int set, int turn) {
      start_products<PLANES_OF_FILTERS>(
          products, sums, columns[set],
          gradients.moved(walk.stage + turn * (SLICES * FRAGMENT_STEP)), LO_AT - walk.stage);
      // What follows overlaps with the products.
      loader.load_step();
      products.template wait<1>();  // the previous products' registers are free
      read(columns[1 - set], turn + 1 < STAGE_TURNS ? turn + 1 : 0);
    };
    // Promotions stay out of the innermost loop, where they would delay products.
    int turn = 0;
#pragma unroll 1
    while (turn < STAGE_TURNS) {
      const int stop = turn + RUN < STAGE_TURNS ? turn + RUN : STAGE_TURNS;
      in_part += stop - turn;
#pragma unroll 1
      for (;;) {
        multiply(0, turn);
        if (++turn == stop) break;
        multiply(1, turn);
        if (++turn == stop) break;
      }
      products.template wait<0>();
      const bool last = band + 1 == share.bands && turn == STAGE_TURNS;
      if (last || in_part + RUN > PROMOTE) sums.end_run(!last), in_part = 0;
    }
  }
  sums.finish();

  reduce_and_store<MEMORY_BYTES / 4>(sums, reinterpret_cast<compute_t*>(memory),
                                     GradientStore<DW_RUN>(tile, position, taps, params));
}
