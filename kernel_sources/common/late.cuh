// Constants of the generated text that come with the launch instead (src/codegen/late.hpp).
#pragma once

#include "common/late.h"
#include "target/late.cuh"

// In the place of a divisor's ADD (src/codegen/source.cpp): it is late, and SHIFT says where its
// record lies.
constexpr u32 LATE_DIVISOR = 2;

template <int AT>  // of a LateDivisor
device_inline u32 divide_late(u32 n) {
  const u32 high = mulhi(n, late_number<u32, AT + 4>());
  return (((n - high) >> late_number<u32, AT + 8>()) + high) >> late_number<u32, AT + 12>();
}
template <int AT>  // of a LateWideDivisor
device_inline u64 divide_late(u64 n) {
  return mulhi(n << 1, late_number<u64, AT + 8>()) >> late_number<u32, AT + 16>();
}

// n / D and n % D, n not negative: of a constant that, where it is late, is a divisor.
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
