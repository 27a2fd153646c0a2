// KILN_RECORD: writes each plan that a running application makes as a line of a manifest for
// `kiln prewarm`.
#pragma once

#include <string>

#include "device/device.hpp"
#include "engines/choice.hpp"
#include "problem/problem.hpp"

namespace kiln {

// {"command":"conv","problem":"--dt f16 g1mb1_...","architecture":"sm_90a","multiprocessors":132},
// with "only_engine":"direct" if the application named the plan's engine, and "workspace":4194304
// if it granted that many bytes of workspace.
std::string manifest_line(const Problem& problem, const DeviceDescription& device,
                          const Terms& terms);

// Appends the line in one write, if KILN_RECORD names a file and this process has not written the
// line before. A file that cannot be written gives one warning.
void record_plan(const Problem& problem, const DeviceDescription& device, const Terms& terms);

}  // namespace kiln
