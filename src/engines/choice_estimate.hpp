// The estimate of what choose() would choose, without its kernel. Engines use it whose candidates
// contain what is chosen for another problem.
#pragma once

#include <cstddef>

#include "engines/choice.hpp"

namespace kiln {

struct ChoiceEstimate {
  double seconds = 0;
  std::size_t workspace = 0;  // bytes
};

// Throws as choose() does.
ChoiceEstimate estimate_choice(const Problem& problem, const DeviceDescription& device,
                               const Terms& terms);

}  // namespace kiln
