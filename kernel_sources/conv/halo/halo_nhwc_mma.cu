// Forward convolution and data gradient in NHWC by mma.sync: an implicit matrix product whose
// pixels are copied to shared memory once for all taps.
//
// A block computes a TILE_M (rows: filters, or channels of dx) x TILE_N (pixels) tile of the
// output. For each chunk of channels, the band of the source that the pixels read, their halo, is
// copied to shared memory, with HALO_STAGES halos in flight (or 1, where that leaves room for wider
// chunks); the filter comes tap by tap, with STAGES taps in flight. Another tap is then only
// another address: ldmatrix takes any rows of 16 bytes. The blocks of a cluster may share one tile:
// each takes some of the steps.
#include "conv/halo/filter_loader.cuh"
#include "conv/halo/halo_loader.cuh"
#include "conv/halo/halo_reader.cuh"
#include "conv/halo/halo_store.cuh"
#include "conv/load/tile_operands.cuh"
#include "target/shared_memory.cuh"

constexpr int FILTER_BYTES = FilterInLines::BYTES;
constexpr int FILTERS_AT = HALO_STAGES * HALO_BYTES;
constexpr int TABLE_AT = FILTERS_AT + STAGES * FILTER_BYTES;
static_assert(!STAGED_STORE || STAGED_BYTES <= SHARED_BYTES);
static_assert(TABLE_AT + 4 * HALO_PIXELS <= SHARED_BYTES);

KILN_KERNEL(halo_nhwc_mma, THREADS, MIN_BLOCKS, GatherParams, params) {
  FragmentSums sums;
  byte_t* const memory = shared_array<byte_t, SHARED_BYTES>(0);
  int* const table = reinterpret_cast<int*>(memory + TABLE_AT);
  byte_t* const filters = memory + FILTERS_AT;

  HaloTile tile(cluster_number(), params);
  tile.keep();
#pragma unroll 1
  for (int i = thread_x(); i < HALO_PIXELS; i += THREADS) table[i] = tile.source_offset(i);
  block_barrier();

  const HaloLoader halo_loader(source_of(tile, params), table);
  const FilterLoader<false> filter_loader(filter_of(tile, params), tile.first_row);
  const auto [begin, end] = StepShare(CHUNKS * tile.taps());
  const int chunks_end = (end + tile.taps() - 1) / tile.taps();

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const FragmentReader reader(filters, position, lane, tile);

  constexpr int AHEAD = STAGES - 1;  // steps in flight
  sums.start();
  Step next = Step::number(begin, tile);  // to be loaded
  Step step = next;
  int load_slot = 0, load_halo = 0;
  bool first = true;
  const auto load = [&] {
    if (first || (HALO_STAGES > 1 && next.starts_chunk(tile))) {
      if (!first) load_halo = load_halo + 1 == HALO_STAGES ? 0 : load_halo + 1;
      halo_loader.load(next.chunk, memory + load_halo * HALO_BYTES);
      first = false;
    }
    filter_loader.load(next, filters + load_slot * FILTER_BYTES);
    load_slot = load_slot + 1 == STAGES ? 0 : load_slot + 1;
    next.advance(tile);
  };

  int slot = 0, halo_slot = 0;
  // The products of one fragment overlap with the loads of the next from shared memory.
  Fragments fragments[2];
  const auto read = [&](Fragments& to, int fragment) {
    reader.load(to, memory + halo_slot * HALO_BYTES, step, slot * FILTER_BYTES, fragment);
  };
  const auto next_halo = [&] {
    if (HALO_STAGES > 1) {
      halo_slot = halo_slot + 1 == HALO_STAGES ? 0 : halo_slot + 1;
    } else if (step.chunk < chunks_end) {
      halo_loader.load(step.chunk, memory);
      async_commit();
      async_wait<0>();
      block_barrier();
    }
  };
  const auto end_step = [&] {
    async_wait<AHEAD - 1>();
    block_barrier();  // the next step has landed for all; this one's slot has been read by all
    step.advance(tile);
    if (step.starts_chunk(tile)) next_halo();
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  };
  const auto multiply_step = [&] {
#pragma unroll
    for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
      const bool last = fragment + 1 == CHUNK_STEPS;
      if (last) end_step();
      read(fragments[(fragment + 1) % 2], last ? 0 : fragment + 1);
      sums.multiply_fragments(fragments[fragment % 2]);
      fragments[(fragment + 1) % 2].split_tf32();
    }
  };
  const auto read_first = [&] {
    async_wait<AHEAD - 1>();
    block_barrier();
    read(fragments[0], 0);
    fragments[0].split_tf32();
  };
  // The first AHEAD steps only load, so that the code that loads exists once. Promotions stay out
  // of the innermost loop, where they would delay products.
  int k = begin - AHEAD;
#pragma unroll 1
  while (k < end) {
    const int from = k < begin ? begin : k;
    const int stop = PROMOTE > 0 && from + PROMOTE < end ? from + PROMOTE : end;
#pragma unroll 1
    for (; k < stop; ++k) {
      if (k + AHEAD < end) load();
      async_commit();
      if (k >= begin)
        multiply_step();
      else if (k + 1 == begin)
        read_first();
    }
    sums.end_run(k < end);
  }
  async_wait<0>();
  store_tile<STAGED_STORE>(sums, position, tile, params, memory);
}
