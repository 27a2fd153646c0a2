// Pooling and its gradient.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

// A thread per element of the result, or per few: takes every problem.
class PoolingEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "pooling"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
