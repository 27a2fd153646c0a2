// The operands of a filter gradient with few channels of x or of dy, as its kernel reads them.
#pragma once

#include <cstdint>
#include <string>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Whether x has fewer channels than dy, or as many.
bool few_of_x(const Gather& gather);
// Whether channels come first.
bool is_planar(const Gather& gather);

// The one with few channels.
struct Few {
  const char* tensor;
  const Dims& strides;
  std::int64_t channels, width;
};
Few few_of(const Gather& gather, bool of_x);

// Of channels-first tensors: bytes that the rows of dy, which lie channel by channel, come by.
std::int64_t planar_copy(const ConvolutionProblem& problem, const Gather& gather);

// Why the kernel cannot read them or the device has no such products, a clause; "" if none.
std::string few_channels_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                 const DeviceDescription& device);

}  // namespace kiln
