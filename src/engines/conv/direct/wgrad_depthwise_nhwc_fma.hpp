// Filter gradient of channels-last tensors with few channels a group: sums of all taps of a few
// rows of the filter in registers, over the whole chip where workspace lets blocks meet.
#pragma once

#include "engines/conv/direct/filter_gradient.hpp"

namespace kiln {

class WgradDepthwiseNhwcFmaEngine final : public FilterGradientEngine {
 public:
  const char* name() const override { return "wgrad_depthwise_nhwc_fma"; }
  Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device, int cluster,
                   int groups) const override;

 protected:
  std::variant<Answer, Refusal> ask(const ConvolutionProblem& problem, const Gather& gather,
                                    const DeviceDescription& device) const override;
};

}  // namespace kiln
