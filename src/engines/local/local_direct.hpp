// Locally connected layers in all passes: a thread for each element of the output. Takes every
// legal problem.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class LocalDirectEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "local_direct"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
