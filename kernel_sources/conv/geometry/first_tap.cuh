// The positions of taps relative to a pixel's topmost, leftmost tap, for filters that are walked
// forward or backward.
#pragma once

#include "conv/geometry/tap_distance.cuh"
#include "target/kernel.cuh"

// The source row that the topmost tap of an image's first row of pixels reads, and the column that
// the leftmost tap of its first column reads.
constexpr int TOP = ORIGIN_H[0] + (STEP_H < 0 ? (FILTER_R[0] - 1) * STEP_H : 0);
constexpr int LEFT = ORIGIN_W[0] + (STEP_W < 0 ? (FILTER_S[0] - 1) * STEP_W : 0);

// The offset of a tap from the topmost, leftmost one, if neighbouring taps of a column are ROW
// apart and those of a row COLUMN.
template <int ROW, int COLUMN>
device_inline int tap_place(int r, int s) {
  return (STEP_H < 0 ? FILTER_R[0] - 1 - r : r) * ROW +
         (STEP_W < 0 ? FILTER_S[0] - 1 - s : s) * COLUMN;
}
