// Forward propagation and data gradient with few output channels a group and filters wider than one
// tap. Threads slide along rows and keep the sums in registers.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class DepthwiseFmaEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "depthwise_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
