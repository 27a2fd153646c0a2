// Normalizations by statistics of groups and pixels: what expect() calls for them.
#pragma once

#include <vector>

#include "reference/reference.hpp"

namespace kiln::reference {

std::vector<Expected> expect_rows(const NormalizationProblem& problem, const Request& request);

}  // namespace kiln::reference
