// Filter gradient of depthwise convolutions of stride 1 of channels-last tensors of 16 bits, of
// long filters: products of Toeplitz matrices of rows of dy on the tensor cores.
#pragma once

#include "engines/conv/direct/filter_gradient.hpp"

namespace kiln {

class WgradToeplitzNhwcMmaEngine final : public FilterGradientEngine {
 public:
  const char* name() const override { return "wgrad_toeplitz_nhwc_mma"; }
  Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device, int cluster,
                   int groups) const override;

 protected:
  std::variant<Answer, Refusal> ask(const ConvolutionProblem& problem, const Gather& gather,
                                    const DeviceDescription& device) const override;
};

}  // namespace kiln
