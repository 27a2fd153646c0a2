// The cost model's constants by name, and the text of the file that defines them in the library.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engines/cost/fitted.hpp"

namespace kiln::cli::fit {

struct NamedConstant {
  std::string_view family, name;  // "gathered_gemm", "mma.issue_share"
  double& (*of)(FittedConstants& constants);
};

// All constants, in the order of their declaration.
std::span<const NamedConstant> all_constants();

std::vector<std::string> family_names();

// The definition of fitted_ARCH: the text of engines/cost/fitted_ARCH.inc below its head of
// comments.
std::string definition_of(const FittedConstants& constants, const std::string& arch);

}  // namespace kiln::cli::fit
