// Pooling and its gradient.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

// The gradient in two dimensions, a tile of dx a block.
class PoolingBackwardTiledEngine final : public Engine {
 public:
  const char* name() const override { return "pooling_backward_tiled"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

// A thread per element of the result: takes every one of them.
class PoolingEngine final : public Engine {
 public:
  const char* name() const override { return "pooling"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
