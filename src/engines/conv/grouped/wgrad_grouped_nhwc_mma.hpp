// Filter gradient of channels-last tensors of 16 bits with few channels a group, as many as 16 of x
// and of dy: products over pixels on the tensor cores, of which the sums within groups are kept.
#pragma once

#include "engines/conv/direct/filter_gradient.hpp"

namespace kiln {

class WgradGroupedNhwcMmaEngine final : public FilterGradientEngine {
 public:
  const char* name() const override { return "wgrad_grouped_nhwc_mma"; }
  Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device, int cluster,
                   int groups) const override;

 protected:
  std::variant<Answer, Refusal> ask(const ConvolutionProblem& problem, const Gather& gather,
                                    const DeviceDescription& device) const override;
};

}  // namespace kiln
