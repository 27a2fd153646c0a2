// Sums over the parts of a channel. A block has CHANNELS channels, of SHARING threads each: thread
// t has channel t % CHANNELS and every SHARING-th part from t / CHANNELS on.
#pragma once

#include "target/shared_memory.cuh"

constexpr u32 CHANNELS = 8, SHARING = 32, THREADS = CHANNELS * SHARING, WARPS = THREADS / 32;

// Sums over the threads of each channel; all of them get the outcome. `round`: 0, then 1.
device_inline float sum_of_channel(float value, u32 round) {
  float* const sums = shared_array<float, 2 * WARPS * CHANNELS>(0) + round * (WARPS * CHANNELS);
#pragma unroll
  for (u32 mask = CHANNELS; mask < 32; mask *= 2) value += warp_shuffle_xor(value, mask);
  if (thread_x() % 32 < CHANNELS) sums[thread_x() / 32 * CHANNELS + thread_x() % 32] = value;
  block_barrier();
  float all = 0;
#pragma unroll
  for (u32 warp = 0; warp < WARPS; ++warp) all += sums[warp * CHANNELS + thread_x() % CHANNELS];
  return all;
}
