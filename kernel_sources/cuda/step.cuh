// How the steps of a plan follow each other on one stream (programmatic dependent launch).
// kernel_sources/host/step.cuh defines the same names for the host device.
//
// From sm_90 on, the blocks of a step may already become resident while the previous step ends,
// which hides the microseconds that a launch costs. The host launches a kernel in this way if its
// file declares KILN_BEGINS_STEP, a variable that the host looks for
// (src/device/cuda/cuda_device.cpp); the kernel must then begin with begin_step().
#pragma once

#include "target/kernel.cuh"

// Stands at namespace scope of a file whose kernel calls begin_step().
#if __CUDA_ARCH__ >= 900
#define KILN_BEGINS_STEP extern "C" __device__ unsigned char kiln_begins_step
#else
#define KILN_BEGINS_STEP static_assert(true)
#endif

// Waits until all previous launches have ended. All threads must call it before they access
// anything that those launches read or write. It also allows the next step's blocks to be launched
// once all of this step's blocks have come here. That permission must not be given earlier: the
// next step might then start before the launches that this step waits for have ended.
device_inline void begin_step() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
