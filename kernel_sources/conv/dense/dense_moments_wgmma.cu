// The forward pass of dense_wgmma.cu that makes the moments of each channel of its result as well
// (moments.cuh): channels last, one phase, sums that need no promotion, results that TMA stores.
// It is a kernel of its own so that the texts of others, the keys of kernel caches, do not depend
// on it.
#include "conv/dense/loads.cuh"
#include "conv/dense/moments.cuh"
#include "conv/dense/products.cuh"
#include "target/shared_memory.cuh"
#include "target/step.cuh"

static_assert(PROMOTE == 0 && !PLANAR && STORE_PIXELS == 0 && !MAY_LACK_TAPS);

device_inline void consume(const MomentsParams& params, Sums& sums, unsigned char* memory,
                           Barriers& barriers) {
  const DenseParams& common = params.dense.common;
  const u32 group = thread_x() / 128 - 1;
  const bool first_lane = thread_x() % 32 == 0;
  Store store(common, memory + SLABS_AT + group * (SLABS * SLAB_BYTES), barriers.residual[group],
              group);
  TileMoments moments(common, memory + SLABS_AT, group);
  SharedSteps products(memory, group);
  Ring ring(0);
#pragma unroll 1
  for (u32 number = block_x(); number < common.tiles[0]; number += grid_x()) {
    const Tile tile(number, common);
    const int steps = tile.steps();
    int before = 0;  // the stage of the previous step
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      barriers.landed[ring.stage].wait(ring.parity);
      products.multiply(sums, ring.stage, step > 0);
      if (first_lane && step > 0) barriers.free[before].arrive();
      before = ring.stage;
      ring.advance();
    }
    products.settle();
    if (first_lane) barriers.free[before].arrive();
    moments.store_tile<0>(store, sums, params.dense, tile);
  }
  store.finish();
  moments.leave(params.partials);
}

KILN_BEGINS_STEP;

KILN_KERNEL(dense_moments_wgmma, THREADS, 1, MomentsParams, params) {
  Sums sums;
  sums.declare();
  unsigned char* const memory = shared_array<unsigned char, BARRIERS_AT>(0);
  Barriers& barriers = *shared_array<Barriers, 1>(BARRIERS_AT);
  if (thread_x() == 0) {
    barriers.init();
    for (int i = 0; i < MAPS; ++i) prefetch_map(params.dense.maps[i]);
  }
  block_barrier();
  begin_step();
  if (thread_x() < 128) {
    give_registers<PRODUCER_REGISTERS>();
    if (thread_x() == 0) produce(params.dense, memory, barriers);
  } else {
    take_registers<CONSUMER_REGISTERS>();
    consume(params, sums, memory, barriers);
  }
}
