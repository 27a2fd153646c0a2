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

// The kernel that a problem gets on a device, from `engine` alone unless that is empty. Needs no
// GPU. As JSON it is one object on a line: the spec, all candidates and refusals, and under the
// stage's name what else the stage has; a cubin has no such form. Throws UsageError where the
// device has no such stage, and what choosing, compiling and disassembling throw.
std::string stage_text(const std::string& stage, const Problem& problem,
                       const DeviceDescription& device, const Terms& terms, std::size_t step,
                       bool as_json);

// Writes the kernel files of that kernel below `folder`, where KILN_KERNEL_SOURCE_DIR takes them
// from once they are edited. Files that are there are kept. What was done, a line a file.
std::string write_sources(const std::string& folder, const Problem& problem,
                          const DeviceDescription& device, const Terms& terms);

// The same text without what differs from kernel to kernel for no reason: addresses in SASS.
std::string comparable(const std::string& stage, const std::string& text);

}  // namespace kiln::cli
