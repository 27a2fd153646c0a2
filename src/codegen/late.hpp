// Late constants: numbers that a kernel's text leaves open, so that one compiled kernel serves
// every shape. Each launch passes them as parameters ahead of the kernel's own. GPUs keep
// parameters in constant memory, so instructions read them as operands, almost like immediates.
// Since nothing is shared between launches, they stay independent in any stream or graph.
#pragma once

#include <cstdint>
#include <string_view>

#include "codegen/kernel_spec.hpp"

namespace kiln {

enum class Treatment : std::uint8_t {
  keep,      // stays in the text, because it shapes the code: a tile, a type, a number of phases
  late,      // becomes a late number of 32 bits
  wide,      // becomes a late number of 64 bits: strides, offsets
  divisor,   // becomes a late divisor of QUOTIENT()
  leave_out  // removed: the kernel does not read it
};
using Treat = Treatment (*)(std::string_view name);

// Makes constants of a step late. The text still shows whether a value is a number, an array or a
// divisor, but not the value. Returns false and leaves the step unchanged if a value does not fit
// into 32 bits.
[[nodiscard]] bool make_late(Step& step, Treat treat);

}  // namespace kiln
