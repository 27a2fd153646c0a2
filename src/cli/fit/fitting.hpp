// Constants that make the cost model's choices better among measured candidates.
#pragma once

#include <string>
#include <vector>

#include "cli/fit/model.hpp"

namespace kiln::cli::fit {

struct FamilyFit {
  std::string family;
  double before = 0, after = 0;  // the loss
};

struct Fitting {
  FittedConstants constants;
  std::vector<FamilyFit> families{};  // those that have a choice to make
};

// Fits the constants of families to what is not left out, one family after another. Candidates have
// estimates by the new constants then.
Fitting fitted(const FittedConstants& own, Model& model, const std::vector<std::string>& families);

// Gives the candidates of each file estimates by constants that were fitted to all other files.
void estimate_left_out(const FittedConstants& own, Model& model, MeasuredSet& set,
                       const std::vector<std::string>& families);

}  // namespace kiln::cli::fit
