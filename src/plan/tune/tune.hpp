// Tunes a plan on its caller's buffers, as frameworks do with cudnn.benchmark.
#pragma once

#include <cstddef>
#include <span>

#include "plan/plan.hpp"

namespace kiln {

// The device memory that a caller lends.
struct Lent {
  Workspace workspace;         // to each execution
  std::span<std::byte> spare;  // for copies of the operands, which executions take turns with
};

// Measures the candidates with the best estimates on these operands, finalizes the plan with the
// fastest one, and stores the winner as `kiln tune` does, so that later plans of the problem use
// it. Executions follow each other back to back, on the operands and their copies in turn. The
// result is written many times. `budget_milliseconds` bounds the executions; compiling kernels that
// are not cached comes on top. Throws as Plan::finalize and Plan::execute. A winner that cannot be
// stored gives a warning.
void tune_plan(Plan& plan, const FinalizeOptions& options, std::span<void* const> operands,
               void* stream, const Lent& lent, double budget_milliseconds);

}  // namespace kiln
