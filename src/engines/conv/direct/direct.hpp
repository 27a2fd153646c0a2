// One output a thread: the last engine for forward propagation and data gradient, which takes every
// legal problem.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class DirectEngine final : public Engine {
 public:
  const char* name() const override { return "direct"; }
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
