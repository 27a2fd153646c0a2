// Where taps lie from a pixel's topmost, leftmost one, whichever way the filter is walked.
#pragma once

#include "target/kernel.cuh"

constexpr int ROW_STEP = STEP_H < 0 ? -STEP_H : STEP_H;  // from a tap to the next
constexpr int COLUMN_STEP = STEP_W < 0 ? -STEP_W : STEP_W;
// Of an image's row 0 of pixels: the row of the source that its topmost tap meets; columns
// likewise.
constexpr int TOP = ORIGIN_H[0] + (STEP_H < 0 ? (FILTER_R[0] - 1) * STEP_H : 0);
constexpr int LEFT = ORIGIN_W[0] + (STEP_W < 0 ? (FILTER_S[0] - 1) * STEP_W : 0);

// Where a tap lies from there on, its neighbours in a column ROW apart, in a row COLUMN.
template <int ROW, int COLUMN>
device_inline int tap_place(int r, int s) {
  return (STEP_H < 0 ? FILTER_R[0] - 1 - r : r) * ROW +
         (STEP_W < 0 ? FILTER_S[0] - 1 - s : s) * COLUMN;
}
