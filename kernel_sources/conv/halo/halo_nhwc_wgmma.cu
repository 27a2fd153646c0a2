// Forward convolution and data gradient in NHWC by wgmma: an implicit matrix product whose pixels
// are copied to shared memory once for all taps, where wgmma reads them.
//
// A block computes a TILE_M (rows: filters, or channels of dx) x TILE_N (places of a line or of a
// strip, pixel_tile.cuh) tile of the output, each warpgroup 64 rows of it. For each chunk of
// channels, what the tile's pixels read of the source, their halo, is copied to shared memory, with
// HALO_STAGES halos in flight; the filter comes tap by tap, with STAGES taps in flight. Another tap
// is then only another start address. The blocks of a cluster may share one tile: each takes some
// of the steps.
#include "conv/halo/halo_planes.cuh"
#include "conv/halo/left_operand.cuh"
#include "conv/load/tile_operands.cuh"
#include "conv/mma/warpgroup_sums.cuh"
#include "conv/store/staged_store.cuh"
#include "target/shared_memory.cuh"

constexpr int FILTER_BYTES = LeftOperand::Layout::BYTES;
constexpr int FILTERS_AT = HALO_STAGES * HALO_BYTES;
constexpr int TABLE_AT = FILTERS_AT + STAGES * FILTER_BYTES;
static_assert(STAGED_BYTES <= SHARED_BYTES);
static_assert(TABLE_AT + 4 * HALO_PIXELS <= SHARED_BYTES);
static_assert(PRODUCTS_M == 1 && !SPLIT && TAP_GROUP == 1);

KILN_KERNEL(halo_nhwc_wgmma, THREADS, MIN_BLOCKS, GatherParams, params) {
  WarpgroupSums sums;
  byte_t* const memory = shared_array<byte_t, SHARED_BYTES>(0);
  int* const table = reinterpret_cast<int*>(memory + TABLE_AT);
  byte_t* const filters = memory + FILTERS_AT;

  const PixelTile tile(cluster_number(), params);
#pragma unroll 1
  for (int i = thread_x(); i < HALO_PIXELS; i += THREADS) table[i] = tile.source_offset(i);
  block_barrier();

  const HaloPlanesLoader halo_loader(source_of(tile, params), table);
  const FilterLoader<true, LeftOperand::Layout> filter_loader(filter_of(tile, params),
                                                              tile.first_row);
  const auto [begin, end] = StepShare(CHUNKS * tile.taps());

  LeftOperand left(filters);
  const SharedMatrix pixels = pixel_matrix(memory);

  // Steps in flight. Operands read in place may still be in use by the products of the step before.
  constexpr int AHEAD = LeftOperand::IN_PLACE ? STAGES - 2 : STAGES - 1;
  static_assert(AHEAD > 0);
  Step next = Step::number(begin, tile);  // to be loaded
  Step step = next;
  int load_slot = 0, load_halo = 0;
  bool first = true;
  const auto load = [&] {
    if (first || next.starts_chunk(tile)) {
      if (!first) load_halo = load_halo + 1 == HALO_STAGES ? 0 : load_halo + 1;
      halo_loader.load(next.chunk, memory + load_halo * HALO_BYTES);
      first = false;
    }
    filter_loader.load(next, filters + load_slot * FILTER_BYTES);
    load_slot = load_slot + 1 == STAGES ? 0 : load_slot + 1;
    next.advance(tile);
  };
#pragma unroll 1
  for (int i = 0; i < AHEAD; ++i) {
    if (begin + i < end) load();
    async_commit();
  }

  sums.start();
  WarpgroupProducts<element_t, PRODUCTS_M, PRODUCTS_N> products;
  int slot = 0, halo_slot = 0;
  bool fresh = true;  // a halo landed that is not yet fenced for the tensor cores
  const auto multiply_step = [&](bool more) {
    async_wait<AHEAD - 1>();
    if (LeftOperand::IN_PLACE || fresh) fence_proxy_async();
    block_barrier();  // the step has landed for all; a slot before it has been read by all
    left.start(slot * FILTER_BYTES);
    const SharedMatrix of_tap =
        pixels.moved(halo_slot * HALO_BYTES + PixelTile::tap(step.r, step.s) * 16);
#pragma unroll
    for (int half = 0; half < LeftOperand::HALVES; ++half) {
      if (half > 0) products.template wait<1>();  // the first half's registers are overwritten next
      left.load(half);
      products.begin();
      constexpr int FRAGMENTS = CHUNK_STEPS / LeftOperand::HALVES;
#pragma unroll
      for (int fragment = half * FRAGMENTS; fragment < (half + 1) * FRAGMENTS; ++fragment)
        left.multiply(products, sums.registers, fragment,
                      of_tap.moved(fragment * (2 * PLANE_BYTES)), fragment > 0 || !sums.fresh);
      products.commit();
    }
    sums.fresh = false;
    // From here on, instructions overlap with the products.
    if (more) load();
    async_commit();
    slot = slot + 1 == STAGES ? 0 : slot + 1;
    step.advance(tile);
    fresh = step.starts_chunk(tile);
    if (fresh) halo_slot = halo_slot + 1 == HALO_STAGES ? 0 : halo_slot + 1;
    // All groups before the last are done: their registers are free, and after the next barrier
    // also the slot and the halo of the step before.
    products.template wait<1>();
  };

  // Promotions stay out of the innermost loop, where they would delay products.
  int k = begin;
#pragma unroll 1
  while (k < end) {
    const int stop = PROMOTE > 0 && k + PROMOTE < end ? k + PROMOTE : end;
#pragma unroll 1
    for (; k < stop; ++k) multiply_step(k + AHEAD < end);
    products.template wait<0>();
    sums.end_run(k < end);
  }
  sums.finish();
  async_wait<0>();
  compute_t* const stage = reinterpret_cast<compute_t*>(memory);
  block_barrier();
  stage_and_store(sums, warpgroup_position(), tile, params, stage);
}
