// Loads the part of the filter that a block of channels needs, for gathers with few channels per
// group. It is in shared memory as [tap][channel of the source, in its group][channel of the
// output] in the compute type, taps ordered by their position in the source.
#pragma once

#include "common/compute_type.cuh"
#include "conv/geometry/gather_params.h"

template <int PHASE, int BLOCK_CHANNELS, int THREADS>
device_inline void load_filter(const GatherParams& params, int first_channel, compute_t* filter) {
  constexpr int TAPS = FILTER_R[PHASE] * FILTER_S[PHASE];
  const element_t* const w = static_cast<const element_t*>(params.w) + W_FIRST[PHASE];
#pragma unroll 1
  for (int i = thread_x(); i < TAPS * CHANNELS * BLOCK_CHANNELS; i += THREADS) {
    // Neighbouring threads read neighbouring taps of a channel, which are usually contiguous.
    const int line = i / TAPS, tap = i - line * TAPS;
    const int channel = line / CHANNELS, in = line % CHANNELS;
    const int row = tap / FILTER_S[PHASE], column = tap - row * FILTER_S[PHASE];
    const int r = STEP_H < 0 ? FILTER_R[PHASE] - 1 - row : row;
    const int s = STEP_W < 0 ? FILTER_S[PHASE] - 1 - column : column;
    const int at = first_channel + channel;
    filter[(tap * CHANNELS + in) * BLOCK_CHANNELS + channel] =
        at < GROUPS * ROWS
            ? to_compute(
                  w[static_cast<i64>(at / ROWS) * W_STRIDE_GROUP +
                    static_cast<i64>(at % ROWS) * W_STRIDE_ROW + static_cast<i64>(in) * W_STRIDE_C +
                    static_cast<i64>(r) * W_STRIDE_R + static_cast<i64>(s) * W_STRIDE_S])
            : compute_t(0);
  }
}
