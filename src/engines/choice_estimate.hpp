// What choose() would take, without its kernel: for an engine whose own candidates are made of what
// is chosen for other problems.
#pragma once

#include <cstddef>

#include "engines/choice.hpp"

namespace kiln {

struct ChoiceEstimate {
  double seconds = 0;
  std::size_t workspace = 0;
};

// Throws as choose() does.
ChoiceEstimate estimate_choice(const Problem& problem, const DeviceDescription& device,
                               const Terms& terms);

}  // namespace kiln
