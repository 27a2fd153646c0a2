// Stand-ins: kernels that execute in place of the chosen one while that is being compiled.
#pragma once

#include <optional>

#include "engines/choice.hpp"

namespace kiln {

struct StandIn {
  Choice choice{};
  // True if its kernels serve every shape: they are compiled once for all problems, so a plan
  // normally does not wait for a compiler. False if it has a kernel of its own that compiles fast.
  bool for_every_shape = false;
};

// The stand-in for a problem; none if the operation has no kernel that is ready sooner than the
// chosen one. It uses no more workspace than granted; an engine named in `grant` is ignored.
std::optional<StandIn> stand_in(const Problem& problem, const DeviceDescription& device,
                                const Grant& grant);

}  // namespace kiln
