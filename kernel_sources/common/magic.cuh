// Division by a constant as a multiplication and a shift. The host computes the multiplier, the
// shift and the form (src/core/magic.hpp), and the generated text holds them as constants.
#pragma once

#include "common/late.cuh"
#include "target/kernel.cuh"

// The type of MULTIPLIER, u32 or u64, is that of the dividend.
template <auto MULTIPLIER, u32 SHIFT, u32 ADD>
device_inline auto divide(decltype(MULTIPLIER) n) {
  if constexpr (ADD == LATE_DIVISOR) return divide_late<SHIFT>(n);
  if constexpr (MULTIPLIER == 0) return n >> SHIFT;  // a power of two
  const auto high = mulhi(n, MULTIPLIER);
  if constexpr (ADD) return (((n - high) >> 1) + high) >> SHIFT;
  return high >> SHIFT;
}

// DIVIDE(DIV_Q, n) is n / DIV_Q. The generated text defines DIV_Q and the constants DIV_Q_MUL,
// DIV_Q_SHIFT and DIV_Q_ADD.
#define DIVIDE(D, n) divide<D##_MUL, D##_SHIFT, D##_ADD>(n)
