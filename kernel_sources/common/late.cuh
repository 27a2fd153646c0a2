// Late constants and divisors: the launch passes them instead of the generated text
// (src/codegen/late.hpp).
#pragma once

#include "common/late.h"
#include "target/late.cuh"

// A divisor whose ADD has this value is late; its SHIFT is then the byte offset of its record
// (src/codegen/source.cpp).
constexpr u32 LATE_DIVISOR = 2;

template <int AT>  // byte offset of a LateDivisor
device_inline u32 divide_late(u32 n) {
  const u32 high = mulhi(n, late_number<u32, AT + 4>());
  return (((n - high) >> late_number<u32, AT + 8>()) + high) >> late_number<u32, AT + 12>();
}
template <int AT>  // byte offset of a LateWideDivisor
device_inline u64 divide_late(u64 n) {
  return mulhi(n << 1, late_number<u64, AT + 8>()) >> late_number<u32, AT + 16>();
}

// n / D and n % D for n >= 0, where D is a constant, or a late divisor if constants are late.
#ifdef LATE_BYTES
template <int AT, class N>
device_inline N quotient_late(N n) {
  return static_cast<N>(divide_late<AT>(static_cast<u32>(n)));
}
template <int AT, class N>
device_inline N remainder_late(N n) {
  return n - quotient_late<AT>(n) * late_number<N, AT>();
}
#define QUOTIENT(n, D) quotient_late<D##_SHIFT>(n)
#define REMAINDER(n, D) remainder_late<D##_SHIFT>(n)
#else
#define QUOTIENT(n, D) ((n) / D)
#define REMAINDER(n, D) ((n) % D)
#endif
