// What the commands of `kiln cache` share.
#pragma once

#include <string>

#include "plan/kernel_text.hpp"

namespace kiln::cli {

// The kernel that a problem ("pool --dt f16 mb16...", as logs print it) gets for an architecture
// (sm_XX, a chip, host; "": the first GPU's, else sm_90a).
struct AskedKernel {
  std::string problem, arch, engine;
  KernelText text;
};
AskedKernel kernel_of_problem(const std::string& problem, const std::string& arch);

// kiln cache why
int explain_problem(const std::string& problem, const std::string& arch, bool as_json);

}  // namespace kiln::cli
