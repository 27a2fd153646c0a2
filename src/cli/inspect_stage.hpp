// One kernel at one stage of its making, as text.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "problem/problem.hpp"

namespace kiln::cli {

// spec, source, ptx, cubin, sass, resources.
extern const std::vector<std::string> stage_names;

// The kernel that a problem gets on a device, from `engine` alone unless that is empty. Needs no
// GPU. Throws UsageError where the device has no such stage, and what choosing, compiling and
// disassembling throw.
std::string stage_text(const std::string& stage, const Problem& problem,
                       const DeviceDescription& device, const std::string& engine);

// Writes the kernel files of that kernel below `folder`, where KILN_KERNEL_SOURCE_DIR takes them
// from once they are edited. Files that are there are kept. What was done, a line a file.
std::string write_sources(const std::string& folder, const Problem& problem,
                          const DeviceDescription& device, const std::string& engine);

// The same text without what differs from kernel to kernel for no reason: addresses in SASS.
std::string comparable(const std::string& stage, const std::string& text);

}  // namespace kiln::cli
