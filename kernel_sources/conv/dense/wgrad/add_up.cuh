// The consumer warpgroups of a dense filter gradient: they add up the products of a share of
// pixels.
#pragma once

#include "conv/dense/wgrad/turn.cuh"

// At launch, all threads have the same number of registers, a multiple of 8; setmaxnreg
// redistributes them, and the sum must not exceed what the block has.
static_assert(HELPERS * HELPER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <=
                  65536 / THREADS / 8 * 8 * (HELPERS + CONSUMERS),
              "nobody would give what the others wait for");

template <bool TURNED>
struct StepsOf {
  using Type = TransposedSteps;
};
template <>
struct StepsOf<true> {
  using Type = TurnedSteps;
};
using Steps = StepsOf<TURNS>::Type;

// Sets the sums to those of the share.
device_inline void add_up_products(const Share& share, Sums& sums, Steps& steps) {
  constexpr u32 RUN = static_cast<u32>(PROMOTE);
  if constexpr (SPLIT)
    sums.clear_totals();
  else
    sums.clear();
#pragma unroll 1
  for (u32 step = share.first; step < share.end;) {
    const u32 stop = share.end - step > RUN ? step + RUN : share.end;
    const bool held = step > share.first;
    steps.start_run();
#pragma unroll 1
    for (; step < stop; ++step) steps.multiply(sums, is_tail(step));
    steps.settle();
    if constexpr (SPLIT) {
      sums.add_to_totals();
    } else {
      if (held) sums.add_held();
      if (step < share.end) {
        sums.hold();
        sums.clear();
      }
    }
  }
}
