// Late constants: numbers that the launch passes instead of the generated text
// (src/codegen/late.hpp). LATE_BYTES of them precede the kernel's own parameters, in constant
// memory, so machine code reads them as operands, almost like immediates.
// kernel_sources/host/late.cuh defines the same names for the host device.
#pragma once

#include "target/kernel.cuh"

// The late constant at byte AT.
template <class T, int AT>
device_inline T late_number();

#ifdef LATE_BYTES

// C++ cannot name a kernel parameter outside the kernel's function, but inline PTX can; ptxas then
// turns these loads into constant-memory operands.
template <class T, int AT>
device_inline T late_number() {
  T value;
  if constexpr (sizeof(T) == 8)
    asm("ld.param.b64 %0, [" LATE_PARAMETER "+%1];" : "=l"(value) : "n"(AT));
  else
    asm("ld.param.b32 %0, [" LATE_PARAMETER "+%1];" : "=r"(value) : "n"(AT));
  return value;
}

// An array of late constants that begins at byte AT.
template <class T, int AT>
struct LateArray {
  device_inline T operator[](int i) const {
    const i64 at = AT + static_cast<i64>(i) * static_cast<i64>(sizeof(T));
    T value;
    if constexpr (sizeof(T) == 8)
      asm("{ .reg .b64 at; mov.b64 at, " LATE_PARAMETER
          "; add.s64 at, at, %1; ld.param.b64 %0, [at]; }"
          : "=l"(value)
          : "l"(at));
    else
      asm("{ .reg .b64 at; mov.b64 at, " LATE_PARAMETER
          "; add.s64 at, at, %1; ld.param.b32 %0, [at]; }"
          : "=r"(value)
          : "l"(at));
    return value;
  }
};

#endif
