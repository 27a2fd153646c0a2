// Forward convolution to few channels, and the data gradient of a source of few channels, on the
// tensor cores (few_rows_tile.cuh): the taps of a filter's row are columns of the product, where
// output channels alone would fill but a small part of it.
//
// Chunk by chunk of channels the halo of a tile of places and the filter, whole, come to shared
// memory, two stages of them. A row of taps is then nothing but another place to read from. A block
// goes from tile to tile: while the last chunk of one is multiplied, the next one's first is
// loaded.
#include "conv/few_rows_loader.cuh"
#include "conv/few_rows_store.cuh"
#include "target/shared_memory.cuh"

constexpr int TABLE_AT = 2 * STAGE_BYTES;
constexpr int MEMORY_BYTES = TABLE_AT + FILTER_ROWS * static_cast<int>(sizeof(FilterRow));
static_assert(LOAD_FRAGMENTS == 1 || LOAD_FRAGMENTS == 2);

// A row of taps of a chunk in f32 by fused multiply-adds: slow, and right where infinities are
// about.
device_inline void add_fused(Sums& sums, const byte_t* filter, const byte_t* halo,
                             Position position) {
#pragma unroll 1
  for (int channel = 0; channel < CHUNK_CHANNELS; ++channel) {
    const auto word = [&](const byte_t* at) {
      return *reinterpret_cast<const float*>(at + channel * 4);
    };
    float pairs[THREAD_N];
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j)
      pairs[j] = word(filter + (position.n + column_step(j)) * PITCH);
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
      const float pixel = word(halo + place_of(position.m + row_step(i)));
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) sums.sum[i][j] += pixel * pairs[j];
    }
  }
}

KILN_KERNEL(few_rows, THREADS, MIN_BLOCKS, GatherParams, params) {
  byte_t* const memory = shared_array<byte_t, MEMORY_BYTES>(0);
  FilterRow* const table = reinterpret_cast<FilterRow*>(memory + TABLE_AT);
  for (int i = thread_x(); i < FILTER_ROWS; i += THREADS) table[i] = filter_row(i);
  clear_idle_columns(memory);
  block_barrier();

  HaloLoader halo_loader(static_cast<const element_t*>(params.source), memory);
  FilterLoader filter_loader(static_cast<const element_t*>(params.w) + W_FIRST[0], memory, table);

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const int warp_m = position.m - lane / LANES_N * RUN_M;
  const int warp_n = position.n - lane % LANES_N * RUN_N;
  const byte_t* const filter =
      memory + FILTER_AT + (warp_n + fragment_row_n(lane)) * PITCH + fragment_part_n(lane);
  u32 pixels[PRODUCTS_M];
#pragma unroll
  for (int i = 0; i < PRODUCTS_M; ++i)
    pixels[i] = place_of(warp_m + i * 16 + fragment_row_m(lane)) + fragment_part_m(lane);

  // What is left of the stage that is being loaded lands, for all.
  const auto land = [&] {
#pragma unroll 1
    while (halo_loader.pending() || filter_loader.pending()) {
      if (halo_loader.pending()) halo_loader.step();
      if (filter_loader.pending()) filter_loader.step();
    }
    async_commit();
    async_wait<0>();
    block_barrier();
  };

  const u32 tiles = static_cast<u32>(params.tiles);
  int stage = 0;       // of the chunk at hand, in shared memory
  u32 loaded = tiles;  // the tile whose first chunk is there; none
#pragma unroll 1
  for (u32 number = block_x(); number < tiles; number += grid_x()) {
    const FewRowsTile tile(number);
    const int steps = CHUNKS * (tile.r.end - tile.r.begin);
    FragmentSums sums;
#pragma unroll 1
    do {
      if (steps == 0) break;  // pixels that meet nothing of the source
      int chunk = 0, r = tile.r.begin;
      const auto start = [&](const FewRowsTile& of, int first, int to) {
        halo_loader.start(of, first, to);
        filter_loader.start(of, first, to);
      };
      // After the last chunk, the next tile's first one.
      const auto start_ahead = [&] {
        const bool last = chunk + 1 == CHUNKS;
        const u32 next = last ? number + grid_x() : number;
        if (next < tiles) start(FewRowsTile(next), last ? 0 : chunk + 1, STAGE_BYTES - stage);
      };
      if (loaded != number) {
        start(tile, 0, stage);
        land();
      }
      loaded = number + grid_x();
      start_ahead();

      const auto end_step = [&] {
        if (++r < tile.r.end) return;
        land();  // the next chunk has landed for all; this one has been read by all
        r = tile.r.begin;
        stage = STAGE_BYTES - stage;
        if (++chunk < CHUNKS) start_ahead();
      };
      if (SPLIT && sums.guarded) {
#pragma unroll 1
        for (int k = 0; k < steps; ++k) {
          add_fused(sums, memory + (stage + FILTER_AT + r * TAP_BYTES),
                    memory + (stage + place_of_tap(r)), position);
          end_step();
        }
        continue;
      }

      // The products of one fragment hide the way of the next from shared memory.
      Fragments fragments[2];
      const auto read = [&](Fragments& to, int fragment) {
        const byte_t* const halo = memory + (stage + place_of_tap(r) + fragment * FRAGMENT_BYTES);
        const byte_t* const taps = filter + (stage + r * TAP_BYTES + fragment * FRAGMENT_BYTES);
#pragma unroll
        for (int i = 0; i < PRODUCTS_M; ++i) load_matrices(to.m[i], halo + pixels[i]);
#pragma unroll
        for (int j = 0; j < PRODUCTS_N; j += 2) {
          u32 both[4];
          load_matrices(both, taps + j * (8 * PITCH));
          to.n[j][0] = both[0], to.n[j][1] = both[1];
          if (j + 1 < PRODUCTS_N) to.n[j + 1][0] = both[2], to.n[j + 1][1] = both[3];
        }
      };
      // turn: which fragment is at hand.
      const auto multiply_step = [&](int turn) {
#pragma unroll
        for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
          const bool last = fragment + 1 == CHUNK_STEPS;
          if (last) end_step();
          Fragments& next = fragments[(turn + fragment + 1) % 2];
          read(next, last ? 0 : fragment + 1);
          // Among the products, for many copies at once would have to wait for each other.
          const int slot = (turn + fragment) % 2;
          sums.multiply_fragments(fragments[slot], [&](int row) {
            const bool halo = LOAD_FRAGMENTS == 1 || slot == 0;
            const bool filters = LOAD_FRAGMENTS == 1 || slot == 1;
            if (halo && row == 0 && halo_loader.pending()) halo_loader.step();
            if (filters && row == PRODUCTS_M / 2 && filter_loader.pending()) filter_loader.step();
          });
          next.take_apart();
        }
      };
      read(fragments[0], 0);
      fragments[0].take_apart();
      multiply_in_turns<CHUNK_STEPS>(sums, steps, multiply_step, [] {});
    } while (sums.finish(reinterpret_cast<compute_t*>(memory + (STAGE_BYTES - stage))));

    // The stage that was read last is free.
    compute_t* const exchange = reinterpret_cast<compute_t*>(memory + (STAGE_BYTES - stage));
    block_barrier();
    exchange_sums(sums, position, exchange);
    block_barrier();
    store_outputs(exchange, tile,
                  epilogue_at(params, tile.image, static_cast<i64>(tile.group) * ROWS, 0));
    block_barrier();  // only then may it be loaded again
  }
}
