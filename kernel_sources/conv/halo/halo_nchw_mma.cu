// Forward convolution and data gradient in NCHW by mma.sync: halo_nhwc_mma.cu with loaders that
// transpose while they copy.
//
// The blocks of a cluster may share one tile: each takes some of the groups of taps.
#include "conv/halo/halo_reader.cuh"
#include "conv/halo/halo_store.cuh"
#include "conv/halo/planar_stages.cuh"
#include "conv/load/tile_operands.cuh"
#include "target/shared_memory.cuh"

// The layout that FragmentReader reads.
struct PlanarLines {
  static constexpr int PIXELS = HALO_PIXELS, TAPS = TAPS_R * TAPS_S, WIDTH = TAPS_S;
  // 16 bytes between taps, because neighbouring lanes write neighbouring taps.
  static constexpr int HALO = HALO_BYTES, TAP = TILE_M * PITCH + 16, ROW = PITCH;
  static constexpr int HALO_LO = 0, TAP_LO = 0;  // f32 is split in registers
  device_inline static constexpr int halo_word(int pixel, int word) {
    return pixel * PITCH + word * WORD_BYTES;
  }
  device_inline static constexpr int tap_word(int word) { return word * WORD_BYTES; }
};
using Stages = PlanarStages<PlanarLines>;

constexpr int FILTERS_AT = 2 * HALO_BYTES;
constexpr int TABLE_AT = FILTERS_AT + 2 * Stages::GROUP;
static_assert(!STAGED_STORE || STAGED_BYTES <= SHARED_BYTES);
static_assert(TABLE_AT + 4 * HALO_PIXELS <= SHARED_BYTES);
static_assert(STAGES == 2 && HALO_STAGES == 2);

KILN_KERNEL(halo_nchw_mma, THREADS, MIN_BLOCKS, GatherParams, params) {
  FragmentSums sums;
  byte_t* const memory = shared_array<byte_t, SHARED_BYTES>(0);
  int* const table = reinterpret_cast<int*>(memory + TABLE_AT);

  const HaloTile tile(cluster_number(), params);
#pragma unroll 1
  for (int i = thread_x(); i < HALO_PIXELS; i += THREADS) table[i] = tile.source_offset(i);
  block_barrier();

  PlanarHaloLoader<PlanarLines> halo_loader(source_of(tile, params), memory, table);
  PlanarFilterLoader<PlanarLines> filter_loader(filter_of(tile, params), tile.first_row, memory);
  const StepShare groups(CHUNKS * (tile.taps() / TAP_GROUP));

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const FragmentReader reader(memory + FILTERS_AT, position, lane, tile);

  sums.start();
  Stages stages(tile, halo_loader, filter_loader, FILTERS_AT, groups.begin, groups.end);
  const auto land = [] {
    async_commit();
    async_wait<0>();
    block_barrier();
  };
  const int steps = stages.groups_left * TAP_GROUP;
  // A group's last share is stored a step after it was loaded, so the first group takes as many
  // steps, too.
  stages.fill<true>(land);

  // The products of one fragment overlap with the loads of the next from shared memory.
  Fragments fragments[2];
  const auto read = [&](Fragments& to, int fragment) {
    reader.load(to, memory + stages.halo_at, stages.step, stages.filter_at, fragment % CHUNK_STEPS);
  };
  // turn: the index of the current fragment.
  const auto multiply_step = [&](int turn) {
    // Issued among the products, because many copies at once would wait for each other.
    const auto load_among = [&](int row) {
      stages.load_filter<PRODUCTS_M>(row);
      if (row == PRODUCTS_M / 2) stages.load_halo();
    };
#pragma unroll
    for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
      const bool last = fragment + 1 == CHUNK_STEPS;
      if (last) stages.end_step(land);
      const Fragments& operands = fragments[(turn + fragment) % 2];
      Fragments& next = fragments[(turn + fragment + 1) % 2];
      read(next, fragment + 1);
      if (last)
        sums.multiply_fragments(operands, load_among);
      else
        sums.multiply_fragments(operands);
      next.split_tf32();
    }
    filter_loader.loader.advance();
  };
  read(fragments[0], 0);
  fragments[0].split_tf32();
  multiply_in_turns<CHUNK_STEPS>(sums, steps, multiply_step, [] {});
  store_tile<STAGED_STORE>(sums, position, tile, params, memory);
}
