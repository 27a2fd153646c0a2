// The operands of a filter gradient in which x or dy has few channels, as its kernel reads them.
#pragma once

#include <cstdint>
#include <string>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Whether x has fewer channels than dy, or as many.
bool few_of_x(const Gather& gather);
// Whether the tensors are NCHW.
bool is_planar(const Gather& gather);

// The operand with few channels.
struct Few {
  const char* tensor;
  const Dims& strides;
  std::int64_t channels, width;
};
Few few_of(const Gather& gather, bool of_x);

// NCHW: bytes of a copy of dy, whose rows are copied channel by channel.
std::int64_t planar_copy(const ConvolutionProblem& problem, const Gather& gather);

// The reason, a clause, why the kernel cannot read the operands or the device cannot multiply them;
// "" if it can.
Refusal few_channels_refusal(const ConvolutionProblem& problem, const Gather& gather,
                             const DeviceDescription& device);

}  // namespace kiln
