// Warpgroups of a block that do different things (sm_90a): barriers of their own, and registers
// that one gives to another. kernel_sources/host/warpgroup.cuh gives the same names.
#pragma once

#include "target/kernel.cuh"

// Waits until THREADS threads of the block, whole warps, have come to barrier `number`, 1 to 15; 0
// is the block's own. Orders their accesses to shared memory.
template <int THREADS>
device_inline void named_barrier(u32 number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

// By all warps of a warpgroup: from here on each of its threads has COUNT registers, a multiple of
// 8 from 24 to 240. Those that give come before those that take can go on.
template <int COUNT>
device_inline void give_registers() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}
template <int COUNT>
device_inline void take_registers() {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
#endif
}
