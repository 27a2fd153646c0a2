// The sum of a value over all threads of a block, in an order that never changes.
#pragma once

#include "target/kernel.cuh"
#include "target/shared_memory.cuh"

// Every thread of a one-dimensional block of THREADS threads (a multiple of 32) must take part;
// thread 0 gets the sum. `offset` is that of THREADS / 32 elements of shared memory, which may be
// reused after a barrier.
template <int THREADS, class T>
device_inline T block_sum(T value, u32 offset) {
  constexpr int WARPS = THREADS / 32;
  T* const of_warps = shared_array<T, WARPS>(offset);
#pragma unroll
  for (u32 mask = 16; mask > 0; mask /= 2) value += warp_shuffle_xor(value, mask);
  if (thread_x() % 32 == 0) of_warps[thread_x() / 32] = value;
  block_barrier();
  T sum = 0;
  if (thread_x() == 0) {
    for (int warp = 0; warp < WARPS; ++warp) sum += of_warps[warp];
  }
  return sum;
}
