// A plan as a problem line: the notation of problem/line/README.md, with every word that decides
// the plan's kernels. KILN_RECORD writes such lines, a manifest for `kiln prewarm`.
#pragma once

#include <string>

#include "device/device.hpp"
#include "engines/choice.hpp"
#include "problem/problem.hpp"

namespace kiln {

// "conv --arch h100 --workspace 16777216 --dt f16 g1mb128_...": command, chip, engine if one is
// named, grant if there is one, then the problem's own words.
std::string plan_line(const Problem& problem, const DeviceDescription& device, const Grant& grant);
// The same without the command.
std::string plan_words(const Problem& problem, const DeviceDescription& device, const Grant& grant);

// Appends the plan's line in one write, if KILN_RECORD names a file and this process has not
// written the line before. A file that cannot be written gives one warning.
void record_plan(const Problem& problem, const DeviceDescription& device, const Grant& grant);

}  // namespace kiln
