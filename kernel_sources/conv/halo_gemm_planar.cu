// Forward convolution and data gradient of tensors whose channels lie apart, on the tensor cores:
// halo_gemm.cu with loaders that transpose on the way.
//
// Shared memory holds two halos and two groups of TAP_GROUP taps of the filter. While the steps of
// a group multiply, they load the next group and some of the next chunk's halo, word by word; the
// threads wait for each other at a group's end alone. A cluster of blocks may share one tile: each
// takes a part of the groups.
#include "conv/halo_reader.cuh"
#include "conv/line_store.cuh"
#include "conv/planar_loader.cuh"
#include "conv/tile_operands.cuh"
#include "target/shared_memory.cuh"

constexpr int FILTERS_AT = 2 * HALO_BYTES;
constexpr int TABLE_AT = FILTERS_AT + 2 * FILTER_BYTES;
constexpr int EXCHANGE = TABLE_AT / static_cast<int>(sizeof(compute_t));
static_assert(STAGES == 2 && HALO_STAGES == 2);

KILN_KERNEL(halo_gemm_planar, THREADS, MIN_BLOCKS, GatherParams, params) {
  byte_t* const memory = shared_array<byte_t, TABLE_AT + 4 * HALO_PIXELS>(0);
  int* const table = reinterpret_cast<int*>(memory + TABLE_AT);

  const HaloTile tile(block_x(), params);
  for (int i = thread_x(); i < HALO_PIXELS; i += THREADS) table[i] = tile.source_offset(i);
  block_barrier();

  HaloLoader halo_loader(source_of(tile, params), memory, table);
  FilterLoader filter_loader(filter_of(tile, params), tile.first_row, memory);

  const int chunk_groups = tile.taps() / TAP_GROUP;
  const auto [begin, end] = StepShare(CHUNKS * chunk_groups);  // groups
  const int last_chunk = (end - 1) / chunk_groups;

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const FragmentReader reader(memory + FILTERS_AT, position, lane, tile);

  FragmentSums sums;
#pragma unroll 1
  do {
    Step step = Step::number(begin * TAP_GROUP, tile);
    Step next = step;  // to be loaded
    int tap = 0;       // of the group
    int groups_left = end - begin;
    int filter_at = 0, halo_at = 0;  // of the step, in shared memory
    int load_at = 0;                 // of the group to be loaded

    const auto start_group = [&] {
      filter_loader.start(next, FILTERS_AT + load_at);
      load_at = FILTER_BYTES - load_at;
      next.advance_rows(TAP_GROUP / TAPS_S, tile);
    };
    const auto land = [&] {
      async_commit();
      async_wait<0>();
      block_barrier();
    };
    // What the group at hand is to load.
    const auto start_ahead = [&](bool starts_chunk) {
      if (groups_left > 1) start_group();
      if (starts_chunk && step.chunk < last_chunk)
        halo_loader.start(step.chunk + 1, HALO_BYTES - halo_at);
    };

    if (groups_left > 0) {
      start_group();
      filter_loader.loader.load_all();
      halo_loader.start(step.chunk, halo_at);
      halo_loader.finish();
      start_ahead(true);
      // A group's last share is stored a step after it was loaded: so this one, too, has as many
      // steps as it takes.
      filter_loader.loader.load<1>(0);
      filter_loader.loader.advance();
    }
    land();

    // The products of one fragment hide the way of the next from shared memory.
    Fragments fragments[2];
    const auto read = [&](Fragments& to, int fragment) {
      reader.load(to, memory + halo_at, step, filter_at, fragment % CHUNK_STEPS);
    };
    const auto end_step = [&] {
      step.advance(tile);
      filter_at += PLANE_BYTES;
      if (++tap < TAP_GROUP) return;
      tap = 0;
      const bool starts_chunk = step.starts_chunk(tile);
      if (starts_chunk) halo_loader.finish();
      land();  // the next group has landed for all; this one has been read by all
      if (filter_at == 2 * FILTER_BYTES) filter_at = 0;
      if (starts_chunk) halo_at = HALO_BYTES - halo_at;
      --groups_left;
      start_ahead(starts_chunk);
    };
    // turn: which fragment is at hand.
    const auto multiply_step = [&](int turn) {
      // Among the products, for many copies at once would have to wait for each other.
      const auto load_among = [&](int row) {
        filter_loader.loader.load<PRODUCTS_M>(row);
        if (row == PRODUCTS_M / 2) halo_loader.step();
      };
#pragma unroll
      for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
        const bool last = fragment + 1 == CHUNK_STEPS;
        if (last) end_step();
        const Fragments& operands = fragments[(turn + fragment) % 2];
        read(fragments[(turn + fragment + 1) % 2], fragment + 1);
        if (last)
          sums.multiply_fragments(operands, load_among);
        else
          sums.multiply_fragments(operands);
      }
      filter_loader.loader.advance();
    };
    const int steps = groups_left * TAP_GROUP;
    if (SPLIT && sums.guarded) {
#pragma unroll 1
      for (int k = 0; k < steps; ++k) {
        filter_loader.loader.load<1>(0);
        filter_loader.loader.advance();
        halo_loader.step();
        reader.add_fused(sums, memory + halo_at, step, filter_at, position, tile);
        end_step();
      }
      continue;
    }

    read(fragments[0], 0);
    multiply_in_turns<CHUNK_STEPS>(sums, steps, multiply_step);
  } while (sums.finish(reinterpret_cast<compute_t*>(memory)));

  const TileStore store(tile, position, tile.first_row, static_cast<i64>(tile.image), tile.group,
                        params);
  block_barrier();
  reduce_and_store<EXCHANGE>(sums, reinterpret_cast<compute_t*>(memory), store);
}
