// Issues as many fused multiply-adds as the chip can, to find the ceiling that `kiln bench`
// reports. A thread has CHAINS sums, none of which waits for another. Two of the three operands are
// the same for all sums, so that register reads have no bank conflicts.
#include "bench/fma_peak_params.h"
#include "target/kernel.cuh"

KILN_KERNEL(fma_peak, THREADS, 2, FmaPeakParams, params) {
  const T factor = static_cast<T>(params.factor), added = static_cast<T>(params.added);
  T sums[CHAINS];
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) sums[i] = static_cast<T>(thread_x() + i);
  for (int round = 0; round < params.rounds; ++round) {
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
#pragma unroll
      for (int i = 0; i < CHAINS; ++i) sums[i] = sums[i] * factor + added;
    }
  }
  T total = 0;
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) total += sums[i];
  // The sums stay positive, so this keeps them alive and writes nothing.
  if (total < 0) *static_cast<T*>(params.out) = total;
}
