// few_output_channels_mma.cu by wgmma on Hopper. Operand B, in shared memory, is the filter; for
// 3xTF32 it is split there into hi and lo parts once per chunk. Operand A, in registers, is the
// source's pixels, read by ldmatrix: one read serves all pairs.
#include "conv/few_output_channels/stages.cuh"
#include "conv/mma/left_fragments.cuh"
#include "target/shared_memory.cuh"

constexpr int LO_AT = 2 * STAGE_BYTES;  // offset of the lo parts of the current stage's filter
constexpr int TABLE_AT = LO_AT + (SPLIT ? TAPS_R * TAP_BYTES : 0);
constexpr int MEMORY_BYTES = TABLE_AT + ALL_FILTER_ROWS * static_cast<int>(sizeof(FilterRow));
static_assert(FILTER_PLANES && !COLUMNS_LEFT && WARP_N == TILE_N && RUN_M == 1);

KILN_KERNEL(few_output_channels_wgmma, THREADS, MIN_BLOCKS, GatherParams, params) {
  WarpgroupSums sums;
  byte_t* const memory = shared_array<byte_t, MEMORY_BYTES>(0);
  FilterRow* const table = reinterpret_cast<FilterRow*>(memory + TABLE_AT);
#pragma unroll 1
  for (int i = thread_x(); i < ALL_FILTER_ROWS; i += THREADS) table[i] = filter_row(i);
  clear_idle_columns(memory);
  block_barrier();
  ChunkWalk walk(params, memory, table);

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  u32 places[PRODUCTS_M];
#pragma unroll
  for (int i = 0; i < PRODUCTS_M; ++i)
    places[i] = place_of(position.m - lane / LANES_N + i * 16 + lane % 16) + lane / 16 * 16;
  const SharedMatrix filter(memory + FILTER_AT, RIGHT_PLANE, 128);

  const auto split_filter = [&](int stage) {
    split_tf32<TAPS_R * TAP_PLANES>(memory + stage + FILTER_AT, memory + LO_AT);
    fence_proxy_async();
    block_barrier();
  };
#pragma unroll 1
  for (; walk.number < walk.tiles; walk.number += grid_x()) {
    const FewOutputChannelsTile tile(walk.number);
    const int steps = tile.chunks() * (tile.r.end - tile.r.begin);
    sums.start();
    if (steps > 0) {  // 0 if no tap of the tile's pixels lies inside the source
      const auto landed = [&](int stage) {
        if (!SPLIT) fence_proxy_async();
        block_barrier();
        if (SPLIT) split_filter(stage);
      };
      walk.begin(tile, landed);

      LeftProducts products;
      const auto settle = [&] { products.template wait<0>(); };
      // Each fragment is read while the previous one is multiplied.
      LeftFragments fragments[2];
      const auto read = [&](LeftFragments& to, int fragment) {
        const byte_t* const halo =
            memory + (walk.stage + place_of_tap(walk.r) + fragment * FRAGMENT_BYTES);
#pragma unroll
        for (int i = 0; i < PRODUCTS_M; ++i) load_matrices(to.hi[i], halo + places[i]);
        to.split_tf32();
      };
      const auto multiply_step = [&](int turn) {
#pragma unroll
        for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
          const bool last = fragment + 1 == CHUNK_STEPS;
          const int at = walk.r * TAP_BYTES + fragment * (2 * RIGHT_PLANE);
          start_products<false>(products, sums, fragments[(turn + fragment) % 2],
                                filter.moved(walk.stage + at), LO_AT - FILTER_AT - walk.stage);
          // The following copies and reads overlap the products.
          if (walk.halo_loader.pending()) walk.halo_loader.step();
          if (walk.filter_loader.pending()) walk.filter_loader.step();
          if (last)
            walk.end_step([&](int stage) {
              settle();  // the products must end before the memory that they read is overwritten
              landed(stage);
            });
          products.template wait<1>();  // the registers of the previous products are free
          read(fragments[(turn + fragment + 1) % 2], last ? 0 : fragment + 1);
        }
      };
      read(fragments[0], 0);
      multiply_in_turns<CHUNK_STEPS>(sums, steps, multiply_step, settle);
    }
    sums.finish();
    // The sums pass through the stage that was read last.
    store_tile(sums, position, tile, params, memory + (STAGE_BYTES - walk.stage));
  }
}
