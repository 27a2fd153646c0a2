// Late constants: numbers that a kernel's text leaves open, for one compiled kernel to serve every
// shape. They come with each launch, ahead of the kernel's own parameters, which is where graphics
// processors keep constants: machine code reads them as operands, as it would immediate ones. So
// launches stay independent of each other, whatever stream or graph they are in.
#pragma once

#include <cstdint>
#include <string_view>

#include "codegen/kernel_spec.hpp"

namespace kiln {

enum class Treatment : std::uint8_t {
  keep,      // it shapes the code: a tile, a type, a number of phases
  late,      // in 32 bits
  wide,      // the same in 64: strides, offsets
  divisor,   // a number, by which QUOTIENT() divides
  leave_out  // the kernel does not read it
};
using Treat = Treatment (*)(std::string_view name);

// Makes constants of a step late. Whether a value is a number, an array of them or a divisor shows
// in the text; what it is does not. False, and the step is what it was, if one does not fit into
// its 32 bits.
[[nodiscard]] bool make_late(Step& step, Treat treat);

}  // namespace kiln
