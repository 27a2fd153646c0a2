// Pointwise operations, computed in the order of the output's memory. Takes every problem.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class PointwiseEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "pointwise"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

// The parameters of a pointwise kernel, with holes for the operands and scalars.
LaunchSpec pointwise_launch(const PointwiseProblem& problem, std::int64_t blocks);

}  // namespace kiln
