// What warpgroups with different tasks in one block use (sm_90a): barriers for some of the warps,
// and the transfer of registers between warpgroups. kernel_sources/host/warpgroup.cuh defines the
// same names for the host device.
#pragma once

#include "target/kernel.cuh"

// Waits until THREADS threads of the block, whole warps, have arrived at barrier `number`, which is
// 1 to 15; 0 is block_barrier()'s. Orders their accesses to shared memory.
template <int THREADS>
device_inline void named_barrier(u32 number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

// Set the number of registers of each thread of a warpgroup to COUNT, a multiple of 8 from 24 to
// 240 (setmaxnreg). All warps of the warpgroup must call this. take_registers() waits until other
// warpgroups have given enough.
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
