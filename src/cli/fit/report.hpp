// The tables that `kiln fit` prints.
#pragma once

#include <string>
#include <vector>

#include "cli/fit/model.hpp"

namespace kiln::cli::fit {

// A table with a line for each family and each file that has candidates, and one for all. No line
// is longer than 100 columns.
std::string table_of(const std::string& title, const MeasuredSet& set, const Model& model);

// Such a table for the problems of the fit, and another one for those left out, if there are any.
std::string tables_of(const MeasuredSet& set, const Model& model);

// A list of the problems whose choice takes over 10% longer than the best, the worst first.
std::string losses_of(const MeasuredSet& set);

}  // namespace kiln::cli::fit
