// Transforms between layouts with different innermost dimensions, through tiles in shared memory.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class TransposeEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "transpose"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
