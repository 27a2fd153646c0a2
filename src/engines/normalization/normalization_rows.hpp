// Normalizations by the statistics of rows: groups of an image's channels, or pixels. Takes every
// problem. One pass makes a row's statistics and stores it; of gradients, another one sums up
// dscale and dbias before. With workspace, the same in stages by as many blocks as fill the chip.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class NormalizationRowsEngine final : public Engine {
 public:
  const char* name() const override { return "normalization_rows"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
