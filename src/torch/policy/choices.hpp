// The file of what the policy `measure` found, so that a process measures only what none before it
// has. A line for each call site, its fields separated by tabs: context (releases of Kiln, PyTorch
// and cuDNN), device, PyTorch's flags, the problems of the results that the call computes, and the
// ways to compute them, as "results that are PyTorch's:microseconds of the device/of the host". The
// last line of a call counts; one that is damaged is passed over.
#pragma once

#include <string>

#include "torch/plans/plan_table.hpp"

namespace kiln::torch {

// Read when first asked for; an empty path or `writable` false: nothing is read or written.
void use_choices_file(std::string path, bool writable, std::string context);

// Sets what the file knows of the call site. The entries have plans.
void recall_choice(const Entries& entries, CallSite& site);

// Appends a line, in one write. A file that cannot be written is no error: the next process
// measures again.
void remember_choice(const Entries& entries, const CallSite& site);

}  // namespace kiln::torch
