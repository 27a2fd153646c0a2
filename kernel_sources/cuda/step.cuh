// How the steps of a plan follow each other on one stream. kernel_sources/host/step.cuh gives the
// same names.
//
// From sm_90 on a step's blocks may be brought to multiprocessors while the step before it ends,
// which hides a launch's microseconds. A kernel that begins with begin_step() is launched
// so if its file says KILN_BEGINS_STEP: a variable by which the host knows it
// (src/device/cuda/cuda_device.cpp).
#pragma once

#include "target/kernel.cuh"

// At namespace scope of a kernel that does.
#if __CUDA_ARCH__ >= 900
#define KILN_BEGINS_STEP extern "C" __device__ unsigned char kiln_begins_step
#else
#define KILN_BEGINS_STEP static_assert(true)
#endif

// By all threads, before they touch what any launch before this one reads or writes: all of it has
// then ended. From here on the next step's blocks may come, as soon as all of this step's are
// there; not earlier, or they might come before what this step waits for has ended.
device_inline void begin_step() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
