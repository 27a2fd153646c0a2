// Division by a launch constant: the host computed multiplier, shift and form (src/core/magic.hpp),
// the generated text holds them as constants, and here the quotient is a multiply and a shift.
#pragma once

#include "target/kernel.cuh"

template <u64 DIVISOR, u32 MULTIPLIER, u32 SHIFT, u32 ADD>
device_inline u32 divide(u32 n) {
  if constexpr (MULTIPLIER == 0) return n >> SHIFT;  // a power of two
  const u32 high = mulhi(n, MULTIPLIER);
  if constexpr (ADD) return (((n - high) >> 1) + high) >> SHIFT;
  return high >> SHIFT;
}

// Indices that need 64 bits are rare and never in a main loop: the compiler's own division by a
// constant serves them.
template <u64 DIVISOR, u32 MULTIPLIER, u32 SHIFT, u32 ADD>
device_inline u64 divide(u64 n) {
  return n / DIVISOR;
}

// DIVIDE(DIV_Q, n): n / DIV_Q, from the four constants that one divisor is printed as.
#define DIVIDE(D, n) divide<D, D##_MUL, D##_SHIFT, D##_ADD>(n)
