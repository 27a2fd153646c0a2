// The host device's steps follow each other whole. See kernel_sources/cuda/step.cuh.
#pragma once

#include "target/kernel.cuh"

#define KILN_BEGINS_STEP static_assert(true)

device_inline void begin_step() {}
