// Tuning a plan on its caller's own buffers: what cudnn.benchmark is to a framework.
#pragma once

#include <span>

#include "plan/plan.hpp"

namespace kiln {

// Finalizes the plan with the kernel that is fastest on these operands, of those few that the cost
// model thinks best, and remembers it as `kiln tune` does, so that later plans of the problem take
// it at once. The result's operand is written many times. `budget_milliseconds` is for executions;
// kernels that are not in the cache are compiled on top of it. Throws as Plan::finalize and
// Plan::execute. A winner that cannot be kept costs a warning.
void tune_plan(Plan& plan, const FinalizeOptions& options, std::span<void* const> operands,
               void* stream, const Workspace& workspace, double budget_milliseconds);

}  // namespace kiln
