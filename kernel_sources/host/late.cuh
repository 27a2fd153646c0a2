// Late constants on the host device: see kernel_sources/cuda/late.cuh.
#pragma once

#include "target/kernel.cuh"

// The late constant at byte AT.
template <class T, int AT>
device_inline T late_number();

#ifdef LATE_BYTES

template <class T>
device_inline T late_at(i64 at) {
  T value;
  __builtin_memcpy(&value, static_cast<const char*>(kiln_context->parameters) + at, sizeof(T));
  return value;
}
template <class T, int AT>
device_inline T late_number() {
  return late_at<T>(AT);
}

template <class T, int AT>
struct LateArray {
  device_inline T operator[](int i) const {
    return late_at<T>(AT + static_cast<i64>(i) * static_cast<i64>(sizeof(T)));
  }
};

#endif
