// A convolution as engines see it: what all of them work out of it, once.
#pragma once

#include "device/device.hpp"
#include "engines/conv/gather.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Refers to the problem and the device that it was made of.
struct Seen {
  Seen(const ConvolutionProblem& convolution, const DeviceDescription& on)
      : problem(convolution), device(on), gather(make_gather(convolution)) {}

  const ConvolutionProblem& problem;
  const DeviceDescription& device;
  Gather gather;  // of a filter gradient: that of the forward pass
};

}  // namespace kiln
