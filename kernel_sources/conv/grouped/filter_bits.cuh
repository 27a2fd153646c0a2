// Weights of small groups, as bits of 16-bit elements. Loads are predicated, so that many are on
// their way at once.
#pragma once

#include "target/kernel.cuh"
#include "target/vector_access.cuh"

// The weight of input channel `in` at tap `tap` for output channel `out`, both in their group. Taps
// are ordered by their position in the source. 0 beyond the last tap or group.
template <int PHASE>
device_inline u32 filter_bits(const element_t* w, int group, int out, int in, int tap) {
  constexpr int TAPS_R = FILTER_R[PHASE], TAPS_S = FILTER_S[PHASE];
  const int row = tap / TAPS_S, column = tap - row * TAPS_S;
  const int r = STEP_H < 0 ? TAPS_R - 1 - row : row;
  const int s = STEP_W < 0 ? TAPS_S - 1 - column : column;
  const i64 at = static_cast<i64>(group) * W_STRIDE_GROUP + static_cast<i64>(out) * W_STRIDE_ROW +
                 static_cast<i64>(in) * W_STRIDE_C + static_cast<i64>(r) * W_STRIDE_R +
                 static_cast<i64>(s) * W_STRIDE_S;
  return load_short(w + at, tap < TAPS_R * TAPS_S && group < GROUPS);
}
