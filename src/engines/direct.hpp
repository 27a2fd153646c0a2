// One output a thread: the last engine of forward propagation and data gradient, which takes
// every legal one.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class DirectEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "direct"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
