// Live taps: the taps of a filter that are inside the source for at least one of some neighbouring
// pixels.
#pragma once

#include "target/kernel.cuh"

// Taps begin <= t < end along one dimension.
struct TapRange {
  int begin, end;
};

// The taps that are inside a source of `size` elements for some pixel first <= o <= last. PADDED:
// not every tap of every pixel is.
template <bool PADDED>
device_inline TapRange live_taps(int first, int last, int stride, int origin, int step, int size,
                                 int taps) {
  if constexpr (!PADDED) return {0, taps};
  const int low = first * stride + origin, high = last * stride + origin;  // what tap 0 reads
  TapRange range{0, taps};
  if (step > 0) {
    // low + t * step < size for the nearest pixel, high + t * step >= 0 for the farthest.
    const int end = low >= size ? 0 : (size - 1 - low) / step + 1;
    if (high < 0) range.begin = (-high + step - 1) / step;
    if (end < range.end) range.end = end;
  } else {
    const int end = high < 0 ? 0 : high / -step + 1;
    if (low >= size) range.begin = (low - size) / -step + 1;
    if (end < range.end) range.end = end;
  }
  if (range.begin >= range.end) range.begin = range.end = 0;
  return range;
}
