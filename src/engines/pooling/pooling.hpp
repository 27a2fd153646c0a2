// Pooling and its gradient.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

// One thread for one or a few elements of the result. Takes every problem.
class PoolingEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "pooling"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
