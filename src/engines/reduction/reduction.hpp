// Reductions over any axes. Takes every problem. If a result has many elements, a cluster of blocks
// shares them. If clusters would leave much of the device idle and the caller grants workspace,
// more blocks share them, and a second step adds up their sums.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class ReductionEngine final : public Engine {
 public:
  const char* name() const override { return "reduction"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
