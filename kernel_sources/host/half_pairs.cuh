// Pairs of 16-bit numbers in a word, on the host device: see kernel_sources/cuda/half_pairs.cuh.
#pragma once

#include "target/half.cuh"
#include "target/math.cuh"

template <class T>
device_inline T half_of(u32 pair, int number) {
  return T{static_cast<unsigned short>(pair >> 16 * number)};
}

template <class T, bool NAN_WINS>
device_inline u32 larger_pair(u32 a, u32 b) {
  u32 result = 0;
  for (int i = 0; i < 2; ++i) {
    const float x = to_float(half_of<T>(a, i)), y = to_float(half_of<T>(b, i));
    const float larger = NAN_WINS ? math_max_nan(x, y) : math_max(x, y);
    result |= static_cast<u32>(from_float<T>(larger).bits) << 16 * i;
  }
  return result;
}

template <class T>
device_inline u32 equal_pair(u32 a, u32 b) {
  u32 result = 0;
  for (int i = 0; i < 2; ++i)
    if (to_float(half_of<T>(a, i)) == to_float(half_of<T>(b, i))) result |= 0xffffu << 16 * i;
  return result;
}

device_inline void add_where_equal(u32 a, u32 b, float x0, float x1, float& sum0, float& sum1) {
  if ((a & 0xffffu) == (b & 0xffffu)) sum0 += x0;
  if (a >> 16 == b >> 16) sum1 += x1;
}
