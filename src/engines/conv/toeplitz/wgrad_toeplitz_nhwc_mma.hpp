// Filter gradient of depthwise convolutions of stride 1 of channels-last tensors of 16 bits, of
// long filters: products of Toeplitz matrices of rows of dy on the tensor cores.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class WgradToeplitzNhwcMmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_toeplitz_nhwc_mma"; }
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
