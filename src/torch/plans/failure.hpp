// Kernels that cannot be made, for want of a compiler or of a device: PyTorch then computes the
// calls, and its warning says so.
#pragma once

#include <string>

#include "torch/plans/plan_request.hpp"

namespace kiln::torch {

// Gives PyTorch's warning, once in a process for each status. A plan that no engine takes is no
// failure, nor is a kernel that KILN_CACHE=strict does not find: nothing is given for these. From
// any thread; where PyTorch cannot raise a Python warning, it prints the text.
void warn_of_failure(kilnStatus_t status, Pass pass, const std::string& why);

}  // namespace kiln::torch
