// wgrad_dense_wgmma.cu for a dw of 16 bits with more tiles than there are multiprocessors. A
// persistent block takes tiles in turn, with all pixels of each, so that a tile's results are
// stored (slab.cuh) and the next one's operands loaded during products.
#include "conv/dense/wgrad/add_up.cuh"
#include "conv/dense/wgrad/slab.cuh"
#include "target/shared_memory.cuh"
#include "target/step.cuh"

struct PersistentParams {
  Params read;
  TensorMap dw;
};

constexpr int RESULTS_AT = STAGES * STAGE_BYTES,
              OWN_BARRIERS_AT = RESULTS_AT + CONSUMERS * RESULT_SLABS * RESULT_SLAB_BYTES;
struct PersistentBarriers {
  Barriers stages;
  Mbarrier residual[CONSUMERS];

  // Called by one thread.
  device_inline void init() {
    for (int i = 0; i < CONSUMERS; ++i) residual[i].init(1);
    stages.init();
  }
};
static_assert(OWN_BARRIERS_AT + static_cast<int>(sizeof(PersistentBarriers)) <= SHARED_BYTES);
static_assert(!TURNS && !PLANAR && !CHECKED && ASKERS == 1);

// Issues the copies of all tiles. Called by one thread.
device_inline void ask(const PersistentParams& params, unsigned char* memory, Barriers& barriers) {
  Ring<STAGES> ring(1);
#pragma unroll 1
  for (u32 tile = block_x(); tile < TILES; tile += grid_x())
    produce<0, SLABS>(params.read, Share::whole(params.read.common, tile), memory, barriers, ring);
}

device_inline void take_tiles(const PersistentParams& params, Sums& sums, unsigned char* memory,
                              PersistentBarriers& barriers, u32 group) {
  ResultSlabs results(params.read.common, params.dw,
                      memory + RESULTS_AT + group * (RESULT_SLABS * RESULT_SLAB_BYTES),
                      barriers.residual[group], group);
  Steps steps(memory, barriers.stages, static_cast<int>(group));
#pragma unroll 1
  for (u32 tile = block_x(); tile < TILES; tile += grid_x()) {
    add_up_products(Share::whole(params.read.common, tile), sums, steps);
    results.store(sums, WgradTile(tile));
  }
  results.finish();
}

KILN_BEGINS_STEP;

KILN_KERNEL(wgrad_dense_persistent_wgmma, THREADS, 1, PersistentParams, params) {
  Sums sums;
  sums.declare();
  unsigned char* const memory = shared_array<unsigned char, OWN_BARRIERS_AT>(0);
  PersistentBarriers& barriers = *shared_array<PersistentBarriers, 1>(OWN_BARRIERS_AT);
  if (thread_x() == 0) {
    barriers.init();
    prefetch_map(params.read.x);
    prefetch_map(params.read.dy);
    prefetch_map(params.dw);
  }
  block_barrier();
  begin_step();
  if (thread_x() < HELPING_THREADS) {
    give_registers<HELPER_REGISTERS>();
    if (thread_x() == 0) ask(params, memory, barriers.stages);
  } else {
    take_registers<CONSUMER_REGISTERS>();
    take_tiles(params, sums, memory, barriers, (thread_x() - HELPING_THREADS) / 128);
  }
}
