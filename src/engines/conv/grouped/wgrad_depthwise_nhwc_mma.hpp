// Filter gradient of channels-last tensors of 16 bits, depthwise or of groups of 2, 4 or 8
// channels: products over pixels on the tensor cores, by warps that walk down the rows of x.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class WgradDepthwiseNhwcMmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_depthwise_nhwc_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // `cluster` blocks add up their sums in shared memory, `groups` of those in the workspace.
  Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device, int cluster,
                   int groups) const;
};

}  // namespace kiln
