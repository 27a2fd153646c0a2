// A block's walk through chunks of channels, tile after tile, with two stages in shared memory;
// common to mma and wgmma. While the last chunk of a tile is multiplied, the first chunk of the
// next is loaded.
#pragma once

#include "conv/few_output_channels/loader.cuh"
#include "conv/few_output_channels/store.cuh"

struct ChunkWalk {
  HaloLoader halo_loader;
  FilterLoader filter_loader;
  u32 tiles, number;  // number of all tiles, and of the current one
  int stage = 0;      // offset of the current chunk's stage in shared memory
  u32 loaded;         // the tile whose first chunk is loaded, if any
  int chunk = 0, chunks = 0, r = 0;
  TapRange taps = {};

  device_inline ChunkWalk(const GatherParams& params, byte_t* memory, const FilterRow* table)
      : halo_loader(static_cast<const element_t*>(params.source), memory),
        filter_loader(static_cast<const element_t*>(params.w) + W_FIRST[0], memory, table),
        tiles(static_cast<u32>(params.tiles)),
        number(block_x()),
        loaded(tiles) {}

  // Calls landed(place) after this thread has stored the rest of the stage at offset `place`.
  template <class Landed>
  device_inline void begin(const FewOutputChannelsTile& tile, const Landed& landed) {
    taps = tile.r;
    chunks = tile.chunks();
    chunk = 0, r = taps.begin;
    if (loaded != number) {
      start(tile, 0, stage);
      land(stage, landed);
    }
    loaded = number + grid_x();
    start_ahead();
  }
  template <class Landed>
  device_inline void end_step(const Landed& landed) {
    if (++r < taps.end) return;
    land(STAGE_BYTES - stage, landed);  // the next chunk has landed, and all have read this one
    r = taps.begin;
    stage = STAGE_BYTES - stage;
    if (++chunk < chunks) start_ahead();
  }

 private:
  device_inline void start(const FewOutputChannelsTile& of, int first, int to) {
    halo_loader.start(of, first, to);
    filter_loader.start(of, first, to);
  }
  // After the last chunk, starts loading the next tile's first one.
  device_inline void start_ahead() {
    const bool last = chunk + 1 == chunks;
    const u32 next = last ? number + grid_x() : number;
    if (next < tiles) start(FewOutputChannelsTile(next), last ? 0 : chunk + 1, STAGE_BYTES - stage);
  }
  template <class Landed>
  device_inline void land(int place, const Landed& landed) {
#pragma unroll 1
    while (halo_loader.pending() || filter_loader.pending()) {
      if (halo_loader.pending()) halo_loader.step();
      if (filter_loader.pending()) filter_loader.step();
    }
    async_commit();
    async_wait<0>();
    landed(place);
  }
};

// Stores a tile's sums through the stage at `free`, which no thread may still read.
template <class Sums>
device_inline void store_tile(const Sums& sums, Position position,
                              const FewOutputChannelsTile& tile, const GatherParams& params,
                              byte_t* free) {
  compute_t* const exchange = reinterpret_cast<compute_t*>(free);
  block_barrier();
#pragma unroll 1
  for (int first = 0; first < TILE_LINES; first += EXCHANGE_LINES) {
    exchange_sums(sums, position, first, exchange);
    block_barrier();
    store_outputs(exchange, tile, first, params);
    block_barrier();  // all threads have read the stage, which is overwritten next
  }
}
