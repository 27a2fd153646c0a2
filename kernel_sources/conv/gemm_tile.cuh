// A TILE_M x TILE_N tile of a matrix product: each thread accumulates THREAD_M x THREAD_N sums in
// registers from operand tiles in shared memory, [TILE_K][TILE_M] and [TILE_K][TILE_N], rows
// PITCH_M and PITCH_N apart. fma_multiply.cuh and mma_multiply.cuh are two ways to do so.
#pragma once

#include "conv/tile_sums.cuh"

constexpr int STAGE_M = TILE_K * PITCH_M;  // elements, of one slice
constexpr int STAGE_N = TILE_K * PITCH_N;
constexpr int STAGE = STAGE_M + STAGE_N;
static_assert(TILE_K % 8 == 0);

// Elements of the stages' memory, of every slice.
constexpr int EXCHANGE = SLICES * STAGES * STAGE;

// Of the ring of stages, the one read before `slot`, which is free once all have passed a barrier.
device_inline int last_slot(int slot) { return (slot == 0 ? STAGES : slot) - 1; }
