// The data gradient of locally connected layers of one and two dimensions: a block for some rows of
// dx, each weight read once.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class LocalDgradFmaEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "local_dgrad_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
