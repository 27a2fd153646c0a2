// A kernel that can run at once, in the place of the one that the choice takes while that one
// compiles.
#pragma once

#include <optional>

#include "engines/choice.hpp"

namespace kiln {

struct StandIn {
  Choice choice{};
  // Its kernels serve every shape: they are compiled once, not for each problem, so a plan need not
  // wait for a compiler. Else it is only quick to compile.
  bool for_every_shape = false;
};

// None where the operation has no kernel that is there sooner than the one that is chosen. It does
// not depend on which engine the caller named, but keeps to the workspace that was granted.
std::optional<StandIn> stand_in(const Problem& problem, const DeviceDescription& device,
                                const Terms& terms);

}  // namespace kiln
