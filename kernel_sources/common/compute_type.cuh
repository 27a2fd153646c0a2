// Conversions between the four element types and the types that kernels compute in.
#pragma once

#include "target/half.cuh"

// The compute type of T: double for double, else float.
template <class T>
struct compute_of {
  using type = float;
};
template <>
struct compute_of<double> {
  using type = double;
};

template <class T>
device_inline float to_compute(T x) {
  return to_float(x);
}
device_inline double to_compute(double x) { return x; }

template <class T>
device_inline T from_compute(typename compute_of<T>::type v) {
  return from_float<T>(v);
}
template <>
device_inline double from_compute<double>(double v) {
  return v;
}
