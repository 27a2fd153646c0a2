// Warpgroups of a block that do different things, on the host device: see
// kernel_sources/cuda/warpgroup.cuh.
#pragma once

#include "target/kernel.cuh"

template <int THREADS>
device_inline void named_barrier(u32 number) {
  static_assert(THREADS > 0 && THREADS % 32 == 0);
  kiln_context->named_barrier(kiln_context, number, THREADS);
}

template <int COUNT>
device_inline void give_registers() {
  static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 240);
}
template <int COUNT>
device_inline void take_registers() {
  static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 240);
}
