// Reductions over any axes: takes every one of them. Where a result's elements are many, clusters
// of blocks share them; where those leave much of the device idle and the caller grants workspace,
// many blocks do, and a second step adds up what they leave there.
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
