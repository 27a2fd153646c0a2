// What `kiln fit` says of the cost model.
#pragma once

#include <string>
#include <vector>

#include "cli/fit/model.hpp"

namespace kiln::cli::fit {

// A table with a line for each family and each group that has candidates, and one for all; a second
// one of what is left out of the fit, if anything is. No line is longer than 100 columns.
std::string tables_of(const MeasuredSet& set, const Model& model);

// The problems whose choice takes over 10% longer than the best, the worst first.
std::string losses_of(const MeasuredSet& set);

}  // namespace kiln::cli::fit
