// Filter gradient of layers of one or few channels a group whose rows lie side by side (channels
// first): sums of all taps of a few rows of the filter in registers.
#pragma once

#include "engines/conv/direct/filter_gradient.hpp"

namespace kiln {

class WgradDepthwiseFmaEngine final : public FilterGradientEngine {
 public:
  const char* name() const override { return "wgrad_depthwise_fma"; }
  Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device, int cluster,
                   int groups) const override;

 protected:
  std::variant<Answer, Refusal> ask(const ConvolutionProblem& problem, const Gather& gather,
                                    const DeviceDescription& device) const override;
};

}  // namespace kiln
