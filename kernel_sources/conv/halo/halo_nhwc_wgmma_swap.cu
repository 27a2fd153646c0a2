// halo_nhwc_mma.cu by wgmma, for 3xTF32, with swapped operands. Operand B, which wgmma reads from
// shared memory, is the filter: a step of it is split there while the step before is multiplied.
// Operand A is the pixels, by ldmatrix, so one read of a pixel serves all rows of the tile.
#include "conv/halo/halo_loader.cuh"
#include "conv/halo/right_filter_loader.cuh"
#include "conv/load/tile_operands.cuh"
#include "conv/mma/left_fragments.cuh"
#include "conv/mma/left_words.cuh"
#include "conv/store/staged_store.cuh"
#include "target/shared_memory.cuh"

constexpr int FILTER_BYTES = PARTS * RIGHT_PLANE;
constexpr int FILTERS_AT = HALO_STAGES * HALO_BYTES;
// Slots for the lo parts of three steps: the one that is being split, the current one, and the one
// before, which some warps' last products may still read.
constexpr int LO_STAGES = 3;
constexpr int LO_AT = FILTERS_AT + STAGES * FILTER_BYTES;
constexpr int TABLE_AT = LO_AT + LO_STAGES * FILTER_BYTES;
static_assert(SPLIT && RUN_M == 2 && RUN_N == 1);
static_assert(STAGED_BYTES <= SHARED_BYTES);
static_assert(TABLE_AT + 4 * HALO_PIXELS <= SHARED_BYTES);

// Reads a lane's pixels.
struct PixelReader {
  const byte_t* pixels[PRODUCTS_LEFT];  // the lane's rows for ldmatrix, in the first halo

  device_inline PixelReader(const HaloTile& tile, const byte_t* halos) {
    const int lane = static_cast<int>(thread_x()) % 32;
    const int warp_n = static_cast<int>(thread_x()) / 32 * WARP_N;
#pragma unroll
    for (int i = 0; i < PRODUCTS_LEFT; ++i)
      pixels[i] = halos + tile.place(warp_n + i * 16 + lane % 16) * PITCH + lane / 16 * 16;
  }
  // at: the offset of the fragment from the first halo, in bytes.
  device_inline void load(LeftFragments& to, int at) const {
#pragma unroll
    for (int i = 0; i < PRODUCTS_LEFT; ++i) load_matrices(to.hi[i], pixels[i] + at);
    to.split_tf32();
  }
};

KILN_KERNEL(halo_nhwc_wgmma_swap, THREADS, MIN_BLOCKS, GatherParams, params) {
  WarpgroupSums sums;
  byte_t* const memory = shared_array<byte_t, SHARED_BYTES>(0);
  int* const table = reinterpret_cast<int*>(memory + TABLE_AT);

  HaloTile tile(cluster_number(), params);
  tile.keep();
#pragma unroll 1
  for (int i = thread_x(); i < HALO_PIXELS; i += THREADS) table[i] = tile.source_offset(i);
  block_barrier();

  const HaloLoader halo_loader(source_of(tile, params), table);
  const RightFilterLoader filter_loader(filter_of(tile, params), tile.first_row);
  const auto [begin, end] = StepShare(CHUNKS * tile.taps());
  const int chunks_end = (end + tile.taps() - 1) / tile.taps();

  const PixelReader reader(tile, memory);
  const SharedMatrix filters(memory + FILTERS_AT, RIGHT_PLANE, 128);

  // Steps in flight. There are also slots for the current step and the one before.
  constexpr int AHEAD = STAGES - 2;
  static_assert(AHEAD >= 2);
  sums.start();
  Step next = Step::number(begin, tile);  // to be loaded
  Step step = next;
  int left = end - begin;  // steps to be loaded
  int load_slot = 0, load_halo = 0;
  bool first = true;
  const auto load = [&] {
    if (left-- > 0) {
      if (first || (HALO_STAGES > 1 && next.starts_chunk(tile))) {
        if (!first) load_halo = load_halo + 1 == HALO_STAGES ? 0 : load_halo + 1;
        halo_loader.load(next.chunk, memory + load_halo * HALO_BYTES);
        first = false;
      }
      filter_loader.load(next, memory + (FILTERS_AT + load_slot * FILTER_BYTES));
      load_slot = load_slot + 1 == STAGES ? 0 : load_slot + 1;
      next.advance(tile);
    }
    async_commit();
  };
#pragma unroll 1
  for (int i = 0; i < AHEAD; ++i) load();
  async_wait<AHEAD - 2>();
  block_barrier();

  // Slots of the current step: of its filter, of the filter's lo parts, of its halo.
  int slot = 0, lo_slot = 0, halo_slot = 0;
  const auto after = [](int number, int count) { return number + 1 == count ? 0 : number + 1; };
  const auto split_filter = [&](int filter, int lo) {
    split_tf32<PARTS>(memory + (FILTERS_AT + filter * FILTER_BYTES),
                      memory + (LO_AT + lo * FILTER_BYTES));
    fence_proxy_async();
  };
  split_filter(slot, lo_slot);
  block_barrier();

  LeftProducts products;
  // A fragment is read while the one before is multiplied.
  LeftFragments pixels[2];
  const auto read = [&](LeftFragments& to, int fragment) {
    reader.load(
        to, halo_slot * HALO_BYTES + tap_pixel(step.r, step.s) * PITCH + fragment * FRAGMENT_BYTES);
  };
  const auto next_halo = [&] {
    if (HALO_STAGES > 1) {
      halo_slot = after(halo_slot, HALO_STAGES);
    } else if (step.chunk < chunks_end) {
      halo_loader.load(step.chunk, memory);
      async_commit();
      async_wait<0>();
      block_barrier();
    }
  };
  const auto end_step = [&] {
    async_wait<AHEAD - 2>();
    block_barrier();  // the next step is split, and the one after it has landed for all
    step.advance(tile);
    if (step.starts_chunk(tile)) next_halo();
    slot = after(slot, STAGES), lo_slot = after(lo_slot, LO_STAGES);
  };
  // turn: the set that holds the step's first fragment.
  const auto multiply_step = [&](int turn) {
#pragma unroll
    for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
      const bool last = fragment + 1 == CHUNK_STEPS;
      start_products<false>(products, sums, pixels[(turn + fragment) % 2],
                            filters.moved(slot * FILTER_BYTES + fragment * (2 * RIGHT_PLANE)),
                            LO_AT - FILTERS_AT + (lo_slot - slot) * FILTER_BYTES);
      // From here on, instructions overlap with the products.
      if (fragment == 0) {
        load();
        split_filter(after(slot, STAGES), after(lo_slot, LO_STAGES));
      }
      if (last) end_step();
      products.wait<1>();  // the previous products' registers are free
      read(pixels[(turn + fragment + 1) % 2], last ? 0 : fragment + 1);
    }
  };
  const int steps = end - begin;
  if (steps > 0) read(pixels[0], 0);
  multiply_in_turns<CHUNK_STEPS>(sums, steps, multiply_step, [&] { products.wait<0>(); });
  sums.finish();
  async_wait<0>();

  // Computed again, because keeping it from the beginning would take registers.
  const HaloTile stored(from_here(cluster_number()), params);
  block_barrier();
  stage_and_store(sums, left_position(from_here(thread_x())), stored, params,
                  reinterpret_cast<compute_t*>(memory));
}
