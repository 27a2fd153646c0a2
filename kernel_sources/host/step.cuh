// The host device's steps follow each other whole. See kernel_sources/cuda/step.cuh.
#pragma once

#include "target/kernel.cuh"

#define KILN_WAITS_FOR_STEP_BEFORE static_assert(true)

device_inline void wait_for_step_before() {}
device_inline void let_next_step_come() {}
