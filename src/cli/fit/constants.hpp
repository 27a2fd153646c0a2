// The cost model's constants by name, and the file that the library has them from.
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

// All of them, in the order of their declaration.
std::span<const NamedConstant> all_constants();

std::vector<std::string> family_names();

// The definition of fitted_ARCH, as engines/cost/fitted_ARCH.inc has it below its head.
std::string definition_of(const FittedConstants& constants, const std::string& arch);

}  // namespace kiln::cli::fit
