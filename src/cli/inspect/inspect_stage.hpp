// One kernel at one stage of its making, as text or JSON.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "engines/choice.hpp"
#include "problem/problem.hpp"

namespace kiln::cli {

// spec, candidates, source, ptx, cubin, sass, resources.
extern const std::vector<std::string> stage_names;

// A kernel of the plan that a problem gets on a device under `grant`, the `step`-th from 0, at a
// stage of stage_names. Needs no GPU. As JSON it is one object on a line: the spec, all candidates
// and refusals, and what else the stage has under the stage's name; a cubin is never JSON. Throws
// UsageError if the device has no such stage, and what choosing, compiling and disassembling throw.
std::string stage_text(const std::string& stage, const Problem& problem,
                       const DeviceDescription& device, const Grant& grant, std::size_t step,
                       bool as_json);

// Writes the kernel sources of the problem's plan below `folder`, to be edited there and used
// through KILN_KERNEL_SOURCE_DIR. Keeps files that are there. Returns a report, one line for each
// file.
std::string write_sources(const std::string& folder, const Problem& problem,
                          const DeviceDescription& device, const Grant& grant);

// A stage's text without what says nothing about a kernel when two are compared: addresses in SASS.
std::string comparable(const std::string& stage, const std::string& text);

}  // namespace kiln::cli
