// What a block of a dense convolution does: one warpgroup copies, CONSUMERS multiply. A Tail takes
// the sums of each tile: it stores them and may make more of them (output.cuh, tile_moments.cuh,
// tile_gradient.cuh).
//
//   Tail(params, memory, group)                       of each consumer warpgroup
//   tail.store(store, sums, tile, ring, barriers)     after a tile's last product
//   tail.leave()                                      after the block's last tile was stored
//   Tail::Loads(params, memory, barriers)(tile, ring) what the producer copies after a tile's
//                                                     operands
//
// Long sums are promoted every PROMOTE steps, because the tensor cores round toward zero. Promotion
// is rare, so the promoted sums are kept in local memory.
#pragma once

#include "conv/dense/loads.cuh"
#include "conv/dense/output.cuh"
#include "conv/dense/products.cuh"
#include "target/shared_memory.cuh"
#include "target/step.cuh"

template <class Tail, class AllParams>
device_inline void consume(const Params& params, const AllParams& all, Sums& sums,
                           unsigned char* memory, Barriers& barriers) {
  const u32 group = thread_x() / 128 - 1;
  const bool first_lane = thread_x() % 32 == 0;
  Store store(params.common, memory + SLABS_AT + group * (SLABS * SLAB_BYTES),
              barriers.residual[group], group);
  Tail tail(all, memory, group);
  StepsOf<LEFT_IN_WORDS>::Type products(memory, group);
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
        products.multiply(sums, ring.stage, step > first);
        if (first_lane && step > first) barriers.free[before].arrive();
        before = ring.stage;
        ring.advance();
      }
      products.settle();
      if (first_lane) barriers.free[before].arrive();
      if constexpr (PROMOTE > 0) {
        if (promoted) sums.add_held();
        if (step < steps) sums.hold();
        promoted = true;
      }
    }
    tail.store(store, sums, tile, ring, barriers);
  }
  store.finish();
  tail.leave();
}

template <class Tail, class AllParams>
device_inline void run_block(const Params& params, const AllParams& all) {
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
    if (thread_x() == 0)
      produce(params, memory, barriers, typename Tail::Loads(all, memory, barriers));
  } else {
    take_registers<CONSUMER_REGISTERS>();
    consume<Tail>(params, all, sums, memory, barriers);
  }
}
