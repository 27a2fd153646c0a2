// Forward convolution and data gradient on Hopper, of channels-last tensors or, with a filter of
// one tap, channels-first ones (PLANAR). A matrix product: TMA loads the operands into shared
// memory (loads.cuh), wgmma reads them there, and TMA stores the results (output.cuh).
//
// Long sums are promoted every PROMOTE steps, because the tensor cores round toward zero. Promotion
// is rare, so the promoted sums are kept in local memory.
//
// A block has one warpgroup that issues copies and CONSUMERS that multiply. There is one persistent
// block for each multiprocessor; it takes tiles (tile.cuh) in turn, so that a tile's results are
// stored while the next one's operands are loaded.
#include "conv/dense/loads.cuh"
#include "conv/dense/output.cuh"
#include "target/shared_memory.cuh"
#include "target/step.cuh"
#include "target/wgmma.cuh"

// For each operand: whether its lines are steps of the reduction, and the lines' length. The
// operand of the next product begins 32 bytes further in a line or, with lines by steps, 16 lines
// further.
constexpr bool LEFT_BY_STEPS = PIXELS_LEFT ? PLANAR : FILTER_BY_CHANNELS;
constexpr bool RIGHT_BY_STEPS = PIXELS_LEFT ? FILTER_BY_CHANNELS : PLANAR;
device_inline constexpr int line_bytes(bool by_steps, bool pixels) {
  return !by_steps ? LINE_BYTES : pixels ? PIXEL_LINE_BYTES : ROW_LINE_BYTES;
}
constexpr int LEFT_LINE = line_bytes(LEFT_BY_STEPS, PIXELS_LEFT),
              RIGHT_LINE = line_bytes(RIGHT_BY_STEPS, !PIXELS_LEFT);
constexpr int LEFT_OPERAND_BYTES = PIXELS_LEFT && PLANAR ? PIXEL_LINE_BLOCK : 64 * LINE_BYTES;
// The distance of product k's operand from the first product's.
device_inline constexpr int steps_at(bool by_steps, bool pixels, int k) {
  return k * (by_steps ? 16 * line_bytes(by_steps, pixels) : 32);
}
device_inline constexpr int line_block(bool pixels) {
  return pixels ? PIXEL_LINE_BLOCK : STEP_CHANNELS * ROW_LINE_BYTES;
}

using Products = WarpgroupProducts<element_t, LEFT, BLOCK_RIGHT / 8>;

// The products over 32 bytes of the reduction, for operands A of the warpgroup from L on.
template <int L>
device_inline void multiply(Products& products, Sums& sums, const SharedMatrix& left,
                            const SharedMatrix& right, bool add) {
  products.template multiply_swizzled<LEFT_BY_STEPS, RIGHT_BY_STEPS, L>(
      sums, left.moved(L * LEFT_OPERAND_BYTES), right, add);
  if constexpr (L + 1 < LEFT) multiply<L + 1>(products, sums, left, right, add);
}

device_inline void consume(const Params& params, Sums& sums, unsigned char* memory,
                           Barriers& barriers) {
  const u32 group = thread_x() / 128 - 1;
  const bool first_lane = thread_x() % 32 == 0;
  Store store(params.common, memory + SLABS_AT + group * (SLABS * SLAB_BYTES),
              barriers.residual[group], group);
  const SharedMatrix lefts = SharedMatrix::swizzled<LEFT_LINE>(
      memory + group * (LEFT * LEFT_OPERAND_BYTES), 8 * LEFT_LINE);
  const SharedMatrix rights = SharedMatrix::swizzled<RIGHT_LINE>(
      memory + LEFT_BYTES, 8 * RIGHT_LINE, line_block(!PIXELS_LEFT));
  Products products;
  Ring ring(0);
  const u32 tiles = params.common.tiles[PHASES - 1];
#pragma unroll 1
  for (u32 number = block_x(); number < tiles; number += grid_x()) {
    const Tile tile(number, params.common);
    const int steps = tile.steps();
    bool promoted = false;  // whether promoted sums exist
    int step = 0;
#pragma unroll 1
    while (step < steps) {
      const int first = step;
      const int end = PROMOTE > 0 && first + PROMOTE < steps ? first + PROMOTE : steps;
      int before = 0;  // the stage of the previous step
#pragma unroll 1
      for (; step < end; ++step) {
        barriers.landed[ring.stage].wait(ring.parity);
        const SharedMatrix left = lefts.moved(ring.stage * STAGE_BYTES);
        const SharedMatrix right = rights.moved(ring.stage * STAGE_BYTES);
        products.begin();
#pragma unroll
        for (int k = 0; k < LINE_BYTES / 32; ++k)
          multiply<0>(products, sums, left.moved(steps_at(LEFT_BY_STEPS, PIXELS_LEFT, k)),
                      right.moved(steps_at(RIGHT_BY_STEPS, !PIXELS_LEFT, k)),
                      step > first || k > 0);
        products.commit();
        products.template wait<1>();
        if (first_lane && step > first) barriers.free[before].arrive();
        before = ring.stage;
        ring.advance();
      }
      products.template wait<0>();
      if (first_lane) barriers.free[before].arrive();
      if constexpr (PROMOTE > 0) {
        if (promoted) sums.add_held();
        if (step < steps) sums.hold();
        promoted = true;
      }
    }
    store_tile<0>(store, sums, params, tile, group);
  }
  store.finish();
}

KILN_BEGINS_STEP;

KILN_KERNEL(dense_wgmma, THREADS, 1, Params, params) {
  Sums sums;
  sums.declare();
  unsigned char* const memory = shared_array<unsigned char, BARRIERS_AT>(0);
  Barriers& barriers = *shared_array<Barriers, 1>(BARRIERS_AT);
  if (thread_x() == 0) {
    barriers.init();
    for (int i = 0; i < MAPS; ++i) prefetch_map(params.maps[i]);
  }
  block_barrier();
  begin_step();
  if (thread_x() < 128) {
    give_registers<PRODUCER_REGISTERS>();
    if (thread_x() == 0) produce(params, memory, barriers);
  } else {
    take_registers<CONSUMER_REGISTERS>();
    consume(params, sums, memory, barriers);
  }
}
