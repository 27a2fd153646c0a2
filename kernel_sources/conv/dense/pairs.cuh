// Two elements of 16 bits in a word.
#pragma once

#include "common/compute_type.cuh"

template <class T>
device_inline u32 packed(T low, T high) {
  return static_cast<u32>(low.bits) | static_cast<u32>(high.bits) << 16;
}
template <class T>
device_inline T low_of(u32 word) {
  return {static_cast<unsigned short>(word)};
}
template <class T>
device_inline T high_of(u32 word) {
  return {static_cast<unsigned short>(word >> 16)};
}
