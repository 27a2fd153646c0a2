// The gradient of pooling in one or two dimensions; a block computes a tile of dx.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class PoolingBackwardTiledEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "pooling_backward_tiled"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
