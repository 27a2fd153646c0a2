// Forward convolution to few channels, and the data gradient of a source with few channels, on the
// tensor cores (tile.cuh). The taps of a filter's row are columns of the product, because the
// output channels alone would fill only a small part of it.
//
// For each chunk of channels, a tile's halo and all taps of the filter are loaded into shared
// memory, in two stages. A row of taps is another offset into the halo. The persistent block takes
// tiles in turn: while the last chunk of a tile is multiplied, the first chunk of the next tile is
// loaded.
#include "conv/few_output_channels/stages.cuh"
#include "conv/mma/fragments.cuh"
#include "target/shared_memory.cuh"

constexpr int TABLE_AT = 2 * STAGE_BYTES;
constexpr int MEMORY_BYTES = TABLE_AT + ALL_FILTER_ROWS * static_cast<int>(sizeof(FilterRow));
static_assert((LOAD_FRAGMENTS == 1 || LOAD_FRAGMENTS == 2) && !FILTER_PLANES);

KILN_KERNEL(few_output_channels_mma, THREADS, MIN_BLOCKS, GatherParams, params) {
  FragmentSums sums;
  byte_t* const memory = shared_array<byte_t, MEMORY_BYTES>(0);
  FilterRow* const table = reinterpret_cast<FilterRow*>(memory + TABLE_AT);
#pragma unroll 1
  for (int i = thread_x(); i < ALL_FILTER_ROWS; i += THREADS) table[i] = filter_row(i);
  clear_idle_columns(memory);
  block_barrier();

  ChunkWalk walk(params, memory, table);

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const int warp_m = position.m - lane / LANES_N * RUN_M;
  const int warp_n = position.n - lane % LANES_N * RUN_N;
  const byte_t* const filter =
      memory + FILTER_AT + (warp_n + fragment_row_n(lane)) * PITCH + fragment_part_n(lane);
  u32 pixels[READS_M];
#pragma unroll
  for (int i = 0; i < READS_M; ++i)
    pixels[i] = place_of(warp_m + i * READ_ROWS + fragment_row_m(lane)) + fragment_part_m(lane);

  const auto landed = [](int) { block_barrier(); };
#pragma unroll 1
  for (; walk.number < walk.tiles; walk.number += grid_x()) {
    const FewOutputChannelsTile tile(walk.number);
    const int steps = tile.chunks() * (tile.r.end - tile.r.begin);
    sums.start();
    if (steps > 0) {  // 0 if no tap of the tile's pixels lies inside the source
      walk.begin(tile, landed);

      // The products of one fragment hide the latency of reading the next one.
      Fragments fragments[2];
      const auto read = [&](Fragments& to, int fragment) {
        const byte_t* const halo =
            memory + (walk.stage + place_of_tap(walk.r) + fragment * FRAGMENT_BYTES);
        const byte_t* const taps =
            filter + (walk.stage + walk.r * TAP_BYTES + fragment * FRAGMENT_BYTES);
        load_fragments_m(to, halo, pixels);
#pragma unroll
        for (int j = 0; j < PRODUCTS_N; j += READ_PRODUCTS)
          load_columns(to, j, taps + j * (8 * PITCH));
      };
      // turn: parity of the current fragment.
      const auto multiply_step = [&](int turn) {
#pragma unroll
        for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
          const bool last = fragment + 1 == CHUNK_STEPS;
          if (last) walk.end_step(landed);
          Fragments& next = fragments[(turn + fragment + 1) % 2];
          read(next, last ? 0 : fragment + 1);
          // Copies are issued between products, because many at once would stall each other.
          const int slot = (turn + fragment) % 2;
          sums.multiply_fragments(fragments[slot], [&](int row) {
            const bool halo = LOAD_FRAGMENTS == 1 || slot == 0;
            const bool filters = LOAD_FRAGMENTS == 1 || slot == 1;
            if (halo && row == 0 && walk.halo_loader.pending()) walk.halo_loader.step();
            if (filters && row == PRODUCTS_M / 2 && walk.filter_loader.pending())
              walk.filter_loader.step();
          });
          next.split_tf32();
        }
      };
      read(fragments[0], 0);
      fragments[0].split_tf32();
      multiply_in_turns<CHUNK_STEPS>(sums, steps, multiply_step, [] {});
    }
    // The sums pass through the stage that was read last.
    store_tile(sums, position, tile, params, memory + (STAGE_BYTES - walk.stage));
  }
}
