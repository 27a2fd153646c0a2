// Fits the cost model's constants, so that it chooses better among measured candidates.
#pragma once

#include <string>
#include <vector>

#include "cli/fit/model.hpp"

namespace kiln::cli::fit {

struct FamilyFit {
  std::string family;
  double before = 0, after = 0;  // Model::loss() before and after the fit
};

struct Fitting {
  FittedConstants constants;
  std::vector<FamilyFit> families{};  // those with a problem of several candidates
};

// Fits the constants of the families, one after another, to the problems that are not left out.
// Afterwards the candidates' estimates are those by the new constants.
Fitting fitted(const FittedConstants& own, Model& model, const std::vector<std::string>& families);

// Sets the estimates of each file's candidates by constants that were fitted to all other files.
void estimate_left_out(const FittedConstants& own, Model& model, MeasuredSet& set,
                       const std::vector<std::string>& families);

}  // namespace kiln::cli::fit
