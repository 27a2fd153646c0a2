// Forward propagation and data gradient of channels-last tensors with few channels a group. A
// thread has 16 bytes of channels, reads the source once into registers, and sums in the compute
// type.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class DepthwiseNhwcFmaEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "depthwise_nhwc_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
