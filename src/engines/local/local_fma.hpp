// Locally connected layers forward: a block for each output pixel reads each of its weights once,
// in vectors.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class LocalFmaEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "local_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
