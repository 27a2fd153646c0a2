// The gradient of pooling in one or two dimensions; a block computes a tile of dx. There are two
// engines of one kernel: of the staged one, which takes maxima, a block first copies what its
// windows read of x to shared memory.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class PoolingBackwardTiledEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "pooling_backward_tiled"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

class PoolingBackwardStagedEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "pooling_backward_staged"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
