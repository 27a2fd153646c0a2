// The filter gradient of locally connected layers: a block for each output pixel writes each
// element of dw once, in vectors.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class WgradLocalFmaEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "wgrad_local_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
