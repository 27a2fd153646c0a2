// A number as an unevaluated sum of two: `low`, less than a unit in the last place of `high`, holds
// what rounding to `high` lost.
#pragma once

#include "target/math.cuh"

template <class T>
struct TwoParts {
  T high, low;
};
template <class T>
device_inline TwoParts<T> product_of(T a, T b) {
  const T high = math_mul(a, b);
  return {high, math_fma(a, b, -high)};
}
// a + b for |a| >= |b| or a = 0.
template <class T>
device_inline TwoParts<T> ordered_sum_of(T a, T b) {
  const T high = math_add(a, b);
  return {high, math_add(b, -math_add(high, -a))};
}
// a + b for all a and b.
template <class T>
device_inline TwoParts<T> sum_of(T a, T b) {
  const T high = math_add(a, b), other = math_add(high, -a);
  return {high, math_add(math_add(a, -math_add(high, -other)), math_add(b, -other))};
}
