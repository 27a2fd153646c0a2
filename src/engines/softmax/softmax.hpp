// Softmax and its gradient, for rows that fit in the registers of a block.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class SoftmaxEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "softmax"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
