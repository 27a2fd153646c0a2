// What `kiln fit` says of the cost model.
#pragma once

#include <string>
#include <vector>

#include "cli/fit/model.hpp"

namespace kiln::cli::fit {

// A table with a line for each family and each file that has candidates, and one for all. No line
// is longer than 100 columns.
std::string table_of(const std::string& title, const MeasuredSet& set, const Model& model);

// The same of what is part of the fit, and, if anything is, of what is left out of it.
std::string tables_of(const MeasuredSet& set, const Model& model);

// The problems whose choice takes over 10% longer than the best, the worst first.
std::string losses_of(const MeasuredSet& set);

}  // namespace kiln::cli::fit
