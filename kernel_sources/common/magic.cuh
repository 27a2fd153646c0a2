// Division by a launch constant: the host computed multiplier, shift and form (src/core/magic.hpp),
// the generated text holds them as constants, and here the quotient is a multiply and a shift.
#pragma once

#include "common/late.cuh"
#include "target/kernel.cuh"

// The type of MULTIPLIER, u32 or u64, is the width of the dividends that it was made for.
template <auto MULTIPLIER, u32 SHIFT, u32 ADD>
device_inline auto divide(decltype(MULTIPLIER) n) {
  if constexpr (ADD == LATE_DIVISOR) return divide_late<SHIFT>(n);
  if constexpr (MULTIPLIER == 0) return n >> SHIFT;  // a power of two
  const auto high = mulhi(n, MULTIPLIER);
  if constexpr (ADD) return (((n - high) >> 1) + high) >> SHIFT;
  return high >> SHIFT;
}

// DIVIDE(DIV_Q, n): n / DIV_Q, from the four constants that one divisor is printed as.
#define DIVIDE(D, n) divide<D##_MUL, D##_SHIFT, D##_ADD>(n)
