// Normalizations by the statistics of the batch. Takes every problem. Statistics, or the sums of a
// gradient, come first: clusters of blocks share channels, or, with workspace, as many blocks as
// fill the chip leave partial totals that a step combines. A pass over the elements follows.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class NormalizationEngine final : public Engine {
 public:
  const char* name() const override { return "normalization"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
