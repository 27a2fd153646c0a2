// Loads the part of the filter that a block of channels needs, for gathers with few channels per
// group. It is in shared memory as [tap][channel of the source, in its group][channel of the
// output] in the compute type, taps ordered by their position in the source.
#pragma once

#include "common/compute_type.cuh"
#include "conv/geometry/gather_params.h"

template <int PHASE, int BLOCK_CHANNELS, int THREADS>
device_inline void load_filter(const GatherParams& params, int first_channel, compute_t* filter) {
  constexpr int TAPS = FILTER_R[PHASE] * FILTER_S[PHASE];
  constexpr int ELEMENTS = TAPS * CHANNELS * BLOCK_CHANNELS;
  // Reads of a thread that are under way at once: one at a time, a 7x7 filter of 192 channels waits
  // for memory 40 times before the first product. At least one, for phases without taps.
  constexpr int TURNS = (ELEMENTS + THREADS - 1) / THREADS;
  constexpr int READS = TURNS > 8 ? 8 : TURNS > 0 ? TURNS : 1;
  const element_t* const w = static_cast<const element_t*>(params.w) + W_FIRST[PHASE];
#pragma unroll 1
  for (int first = thread_x(); first < ELEMENTS; first += READS * THREADS) {
    element_t read[READS] = {};
#pragma unroll
    for (int k = 0; k < READS; ++k) {
      // Neighbouring threads read neighbouring taps of a channel, which are usually contiguous.
      const int i = first + k * THREADS, line = i / TAPS, tap = i - line * TAPS;
      const int in = line % CHANNELS, at = first_channel + line / CHANNELS;
      const int row = tap / FILTER_S[PHASE], column = tap - row * FILTER_S[PHASE];
      const int r = STEP_H < 0 ? FILTER_R[PHASE] - 1 - row : row;
      const int s = STEP_W < 0 ? FILTER_S[PHASE] - 1 - column : column;
      if (i < ELEMENTS && at < GROUPS * ROWS)
        read[k] = w[static_cast<i64>(at / ROWS) * W_STRIDE_GROUP +
                    static_cast<i64>(at % ROWS) * W_STRIDE_ROW + static_cast<i64>(in) * W_STRIDE_C +
                    static_cast<i64>(r) * W_STRIDE_R + static_cast<i64>(s) * W_STRIDE_S];
    }
#pragma unroll
    for (int k = 0; k < READS; ++k) {
      const int i = first + k * THREADS, line = i / TAPS, tap = i - line * TAPS;
      if (i < ELEMENTS)
        filter[(tap * CHANNELS + line % CHANNELS) * BLOCK_CHANNELS + line / CHANNELS] =
            to_compute(read[k]);
    }
  }
}
