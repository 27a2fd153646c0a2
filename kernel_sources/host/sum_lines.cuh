// Sums line by line, on the host device: see kernel_sources/cuda/sum_lines.cuh.
#pragma once

#include "target/sum_registers.cuh"

template <class Place, bool ALONG_LEFT, int LEFT, int RIGHT, bool TOTALS, bool HELD>
device_inline void take_line(SumRegisters<float, LEFT, RIGHT, TOTALS, HELD>& registers,
                             float (&line)[(ALONG_LEFT ? RIGHT : LEFT) * 2]) {
  auto& sums = registers.stored();
  for (int l = 0; l < LEFT; ++l)
    for (int r = 0; r < RIGHT; ++r)
      for (int c = 0; c < 4; ++c) {
        if ((ALONG_LEFT ? l + c / 2 : r + c % 2) == 0)
          line[Place::in_line(l, r, c)] = sums[l][r][c];
      }
  for (int l = 0; l < LEFT; ++l)
    for (int r = 0; r < RIGHT; ++r)
      for (int i = 0; i < 2; ++i) {
        if (ALONG_LEFT) {
          sums[l][r][i] = sums[l][r][2 + i];
          if (l + 1 < LEFT) sums[l][r][2 + i] = sums[l + 1][r][i];
        } else {
          sums[l][r][2 * i] = sums[l][r][2 * i + 1];
          if (r + 1 < RIGHT) sums[l][r][2 * i + 1] = sums[l][r + 1][2 * i];
        }
      }
}
