// The start of a box of a channels-last tensor, and the tap that is read, as TMA's instructions
// take them: in SPACE dimensions of space, 2 or, with depth, 3.
#pragma once

#include "target/kernel.cuh"

static_assert(SPACE == 2 || SPACE == 3);

struct BoxAt {
  int at[SPACE + 2];
  device_inline BoxAt(int channel, int w, int h, int d, int n) {
    at[0] = channel, at[1] = w, at[2] = h;
    if constexpr (SPACE == 3) at[3] = d;
    at[SPACE + 1] = n;
  }
};

struct TapAt {
  int at[SPACE];
  device_inline TapAt(int w, int h, int d) {
    at[0] = w, at[1] = h;
    if constexpr (SPACE == 3) at[2] = d;
  }
};
