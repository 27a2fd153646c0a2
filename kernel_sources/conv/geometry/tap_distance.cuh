// The distance of neighbouring taps in the source, whether a filter is walked forward or backward.
#pragma once

#include "target/kernel.cuh"

constexpr int DISTANCE_H = STEP_H < 0 ? -STEP_H : STEP_H,
              DISTANCE_W = STEP_W < 0 ? -STEP_W : STEP_W;
