// Filter gradient of channels-last tensors of 16 bits, depthwise or of groups of 2, 4 or 8
// channels: products over pixels on the tensor cores, by warps that walk down the rows of x.
#pragma once

#include "engines/conv/direct/filter_gradient.hpp"

namespace kiln {

class WgradDepthwiseNhwcMmaEngine final : public FilterGradientEngine {
 public:
  const char* name() const override { return "wgrad_depthwise_nhwc_mma"; }
  Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device, int cluster,
                   int groups) const override;

 protected:
  std::variant<Answer, Refusal> ask(const ConvolutionProblem& problem, const Gather& gather,
                                    const DeviceDescription& device) const override;
};

}  // namespace kiln
