// One output a thread: the last engine, which takes every legal forward convolution.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class DirectEngine final : public Engine {
 public:
  const char* name() const override { return "direct"; }
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
