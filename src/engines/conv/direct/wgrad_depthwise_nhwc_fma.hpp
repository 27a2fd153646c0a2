// Filter gradient of channels-last tensors with few channels a group: sums of all taps of a few
// rows of the filter in registers, over the whole chip where workspace lets blocks meet.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class WgradDepthwiseNhwcFmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_depthwise_nhwc_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // `cluster` blocks add up their sums in shared memory, `groups` of those in the workspace.
  Proposal propose(const ConvolutionProblem& problem, int cluster, int groups) const;
};

}  // namespace kiln
