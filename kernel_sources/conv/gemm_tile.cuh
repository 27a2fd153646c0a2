// A TILE_M x TILE_N tile of a matrix product: each thread accumulates THREAD_M x THREAD_N sums in
// registers from operand tiles in shared memory, [TILE_K][TILE_M] and [TILE_K][TILE_N], rows
// PITCH_M and PITCH_N apart. fma_multiply.cuh and mma_multiply.cuh are two ways to do so.
#pragma once

#include "conv/tile_sums.cuh"
#include "target/async_copy.cuh"

constexpr int STAGE_M = TILE_K * PITCH_M;  // elements, of one slice
constexpr int STAGE_N = TILE_K * PITCH_N;
constexpr int STAGE = STAGE_M + STAGE_N;
static_assert(TILE_K % 8 == 0);

// Whether the first stages are loaded by the loop that multiplies, which then only loads: so what
// loads is there once. FMA units and products of f64 lose up to 3% by the branch between copies and
// products; three products of f32, whose text takes NVRTC longest, 1%.
constexpr bool FILLED_BY_LOOP = SPLIT;

// Elements of the stages' memory, of every slice.
constexpr int EXCHANGE = SLICES * STAGES * STAGE;

// Of the ring of stages, the one read before `slot`, which is free once all have passed a barrier.
device_inline int last_slot(int slot) { return (slot == 0 ? STAGES : slot) - 1; }

// Walks the steps begin <= k < end with all stages but one in flight. load(k, slot) begins to bring
// a step's operands to a stage, store(slot) writes there what came by registers; multiply(slot,
// whether it is the last).
template <class Load, class Store, class Multiply>
device_inline void run_stages(int begin, int end, const Load& load, const Store& store,
                              const Multiply& multiply) {
  constexpr int AHEAD = STAGES - 1;
  if constexpr (!FILLED_BY_LOOP) {
#pragma unroll 1
    for (int i = 0; i < AHEAD; ++i) {
      if (begin + i < end) {
        load(begin + i, i);
        store(i);
      }
      async_commit();
    }
  }
  int slot = FILLED_BY_LOOP ? STAGES - AHEAD : 0;
#pragma unroll 1
  for (int k = FILLED_BY_LOOP ? begin - AHEAD : begin; k < end; ++k) {
    async_wait<AHEAD - 1>();
    block_barrier();  // step k has landed for all; the slot read last is free for all
    const bool more = k + AHEAD < end;
    if (more) load(k + AHEAD, last_slot(slot));
    async_commit();
    if (!FILLED_BY_LOOP || k >= begin) multiply(slot, k + 1 == end);
    if (more) store(last_slot(slot));
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  }
}
