// Convolutions with moments of their result, of any kind: the convolution without them by the
// engine with the best estimate, then a pass over the result.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class MomentsPassEngine final : public Engine {
 public:
  const char* name() const override { return "moments_pass"; }
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  bool makes_moments() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
