// The data gradient of a locally connected layer, a block some rows of dx, which reads each weight
// once: one and two dimensions of space.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class LocalDgradFmaEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "local_dgrad_fma"; }
  bool takes_mixed_types() const override { return true; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
