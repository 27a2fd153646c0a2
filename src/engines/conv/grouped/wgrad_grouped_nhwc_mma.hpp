// Filter gradient of channels-last tensors of 16 bits with few channels a group, as many as 16 of x
// and of dy: products over pixels on the tensor cores, of which the sums within groups are kept.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class WgradGroupedNhwcMmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_grouped_nhwc_mma"; }
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
