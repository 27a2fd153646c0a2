// Reductions over any axes, clusters of blocks sharing long ones: takes every one of them.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class ReductionEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "reduction"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
