// Few output channels a group, filters wider than one tap: threads slide along rows, sums in
// registers.
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
