// The chunks of channels that a block walks, tile after tile, whichever way it multiplies: two
// stages in shared memory. While the last chunk of a tile is multiplied, the next one's first is
// loaded.
#pragma once

#include "conv/few_output_channels/loader.cuh"
#include "conv/few_output_channels/store.cuh"

struct ChunkWalk {
  HaloLoader halo_loader;
  FilterLoader filter_loader;
  u32 tiles, number;  // of the tile at hand
  int stage = 0;      // of the chunk at hand, in shared memory
  u32 loaded;         // the tile whose first chunk is there; none
  int chunk = 0, chunks = 0, r = 0;
  TapRange taps = {};

  device_inline ChunkWalk(const GatherParams& params, byte_t* memory, const FilterRow* table)
      : halo_loader(static_cast<const element_t*>(params.source), memory),
        filter_loader(static_cast<const element_t*>(params.w) + W_FIRST[0], memory, table),
        tiles(static_cast<u32>(params.tiles)),
        number(block_x()),
        loaded(tiles) {}

  // landed(place): once what is left of a stage, at `place`, has been stored by this thread.
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
    land(STAGE_BYTES - stage, landed);  // the next chunk for all; this one has been read by all
    r = taps.begin;
    stage = STAGE_BYTES - stage;
    if (++chunk < chunks) start_ahead();
  }

 private:
  device_inline void start(const FewOutputChannelsTile& of, int first, int to) {
    halo_loader.start(of, first, to);
    filter_loader.start(of, first, to);
  }
  // After the last chunk, the next tile's first one.
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

// A tile's sums, once no thread reads the stage at `free` any more.
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
    block_barrier();  // only then may it be written again
  }
}
