// The file of the policy `measure`: a process measures only calls that no earlier process measured.
// Each call site has a line of fields separated by tabs: context (releases of Kiln, PyTorch and
// cuDNN), device, PyTorch's flags, the problems of the call's results, and the ways to compute
// them, as "results by PyTorch:microseconds on the device/on the host". The last line of a call
// counts; damaged lines are skipped.
#pragma once

#include <string>

#include "torch/plans/plan_table.hpp"

namespace kiln::torch {

// Sets the file, which is read on first use. With an empty path nothing is read; with an empty path
// or `writable` false nothing is written.
void use_choices_file(std::string path, bool writable, std::string context);

// Sets the ways of the call site if the file has them. The entries must have plans.
void recall_choice(const Entries& entries, CallSite& site);

// Appends the call site's line in one write. Failure to write is ignored: the next process measures
// again.
void remember_choice(const Entries& entries, const CallSite& site);

}  // namespace kiln::torch
