// A TILE_M x TILE_N tile of a matrix product: each thread accumulates THREAD_M x THREAD_N sums in
// registers from operand tiles in shared memory, [TILE_K][TILE_M] and [TILE_K][TILE_N], rows
// PITCH_M and PITCH_N apart. fma_multiply.cuh and mma_multiply.cuh are two ways to do so.
#pragma once

#include "conv/geometry/tile_sums.cuh"
#include "target/async_copy.cuh"

constexpr int STAGE_M = TILE_K * PITCH_M;  // elements, of one slice
constexpr int STAGE_N = TILE_K * PITCH_N;
constexpr int STAGE = STAGE_M + STAGE_N;
static_assert(TILE_K % 8 == 0);

// Whether the main loop also loads the first stages (without multiplying), so that the code that
// loads exists once. The branch costs FMA units and f64 up to 3%, and 3xTF32, whose text takes
// NVRTC longest, 1%.
constexpr bool FILLED_BY_LOOP = SPLIT;

// Elements of all stages of all slices.
constexpr int EXCHANGE = SLICES * STAGES * STAGE;

// The stage read before `slot`, which is free after the next barrier.
device_inline int last_slot(int slot) { return (slot == 0 ? STAGES : slot) - 1; }

// Runs steps begin <= k < end with all stages but one in flight. loader.load<SHARES>(share, active,
// k, stage) starts to load a share of a step's operands to a stage, if `active`;
// loader.store(stage) writes what came through registers. sums.multiply_tile(..., between) calls
// between(i) for 0 <= i < LOAD_SHARES among a stage's products if LOAD_SHARES > 1: then the step
// ahead is loaded there, otherwise before the products.
template <class Loader, class Sums>
device_inline void run_stages(int begin, int end, compute_t* stages, Loader& loader, Sums& sums,
                              const Position& position) {
  constexpr int AHEAD = STAGES - 1, SHARES = Sums::LOAD_SHARES;
  constexpr bool AMONG_PRODUCTS = SHARES > 1;
  if constexpr (!FILLED_BY_LOOP) {
#pragma unroll 1
    for (int i = 0; i < AHEAD; ++i) {
      if (begin + i < end) {
        loader.template load<1>(0, true, begin + i, stages + i * STAGE);
        loader.store(stages + i * STAGE);
      }
      async_commit();
    }
  }
  int slot = FILLED_BY_LOOP ? STAGES - AHEAD : 0;
#pragma unroll 1
  for (int k = FILLED_BY_LOOP ? begin - AHEAD : begin; k < end; ++k) {
    async_wait<AHEAD - 1>();
    block_barrier();  // step k has landed for all threads; all have read the previous slot
    const bool more = k + AHEAD < end;
    compute_t* const free = stages + last_slot(slot) * STAGE;
    const auto load_among = [&](int share) {
      if constexpr (AMONG_PRODUCTS) loader.template load<SHARES>(share, more, k + AHEAD, free);
    };
    if (!AMONG_PRODUCTS) {
      if (more) loader.template load<1>(0, true, k + AHEAD, free);
      async_commit();
    }
    const compute_t* const stage = stages + slot * STAGE;
    if (!FILLED_BY_LOOP || k >= begin)
      sums.multiply_tile(stage, stage + STAGE_M, position, k + 1 == end, load_among);
    if (AMONG_PRODUCTS) async_commit();
    if (more) loader.store(free);
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }
}
