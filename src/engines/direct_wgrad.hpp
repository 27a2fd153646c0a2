// One element of dw a thread block: the last engine of the filter gradient, which takes every legal
// one.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class DirectWgradEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "direct_wgrad"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
