// Constants of the generated text that come with the launch (src/codegen/late.hpp): LATE_BYTES of
// them lie ahead of the kernel's own parameters, where machine code finds its operands as it finds
// immediate ones. kernel_sources/host/late.cuh gives the same names on the host device.
#pragma once

#include "target/kernel.cuh"

// The number at a place.
template <class T, int AT>
device_inline T late_number();

#ifdef LATE_BYTES

// The compiler proper has no name for a parameter outside the kernel's
// function; its assembly has, and takes what these instructions say for an operand.
template <class T, int AT>
device_inline T late_number() {
  T value;
  if constexpr (sizeof(T) == 8)
    asm("ld.param.b64 %0, [" LATE_PARAMETER "+%1];" : "=l"(value) : "n"(AT));
  else
    asm("ld.param.b32 %0, [" LATE_PARAMETER "+%1];" : "=r"(value) : "n"(AT));
  return value;
}

// Numbers from a place on.
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
