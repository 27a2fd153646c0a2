// How the steps of a plan follow each other on one stream. kernel_sources/host/step.cuh gives the
// same names.
//
// From sm_90 on a step's blocks may be brought to multiprocessors while the step before it ends,
// which hides a launch's microseconds. A kernel that begins with wait_for_step_before() is launched
// so if its file says KILN_WAITS_FOR_STEP_BEFORE: a variable by which the host knows it
// (src/device/cuda/cuda_device.cpp).
#pragma once

#include "target/kernel.cuh"

// At namespace scope of a kernel that waits.
#if __CUDA_ARCH__ >= 900
#define KILN_WAITS_FOR_STEP_BEFORE extern "C" __device__ unsigned char kiln_waits_for_step_before
#else
#define KILN_WAITS_FOR_STEP_BEFORE static_assert(true)
#endif

// By all threads, before they touch what any launch before this one reads or writes: all of it has
// then ended.
device_inline void wait_for_step_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// By a thread of each block, at its start: the next step's blocks may come as soon as all of this
// step's are there.
device_inline void let_next_step_come() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
