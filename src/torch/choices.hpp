// The file of what the policy `measure` found, so that a process measures only what none before it
// has. A line for each plan, its fields separated by tabs: context (releases of Kiln, PyTorch and
// cuDNN), device, PyTorch's flags, problem, microseconds of Kiln and of PyTorch. The last line of a
// problem counts; one that is damaged is passed over.
#pragma once

#include <string>

#include "torch/plan_table.hpp"

namespace kiln::torch {

// Read when first asked for; an empty path or `writable` false: nothing is read or written.
void use_choices_file(std::string path, bool writable, std::string context);

// Sets the entry's verdict if the file has one. The entry has a plan.
void recall_choice(PlanEntry& entry);

// Appends a line, in one write. A file that cannot be written is no error: the next process
// measures again.
void remember_choice(const PlanEntry& entry, double kiln_us, double native_us);

}  // namespace kiln::torch
