// The taps of a row and of a column of the filter, where all pixels are of one phase.
#pragma once

#include "target/kernel.cuh"

constexpr int TAPS_R = FILTER_R[0], TAPS_S = FILTER_S[0];
