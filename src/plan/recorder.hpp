// KILN_RECORD: every plan that a running application makes, as a line of a manifest that
// `kiln prewarm` takes.
#pragma once

#include <string>

#include "device/device.hpp"
#include "engines/choice.hpp"
#include "problem/problem.hpp"

namespace kiln {

// {"command":"conv","problem":"--dt f16 g1mb1_...","architecture":"sm_90a","multiprocessors":132},
// and ,"only_engine":"direct" of a plan whose engine the application named, and
// ,"workspace":4194304 of one that it granted bytes of workspace.
std::string manifest_line(const Problem& problem, const DeviceDescription& device,
                          const Terms& terms);

// Appends it to the file, in one write, if KILN_RECORD names one and this process has not written
// that line before. A file that cannot be written costs one warning.
void record_plan(const Problem& problem, const DeviceDescription& device, const Terms& terms);

}  // namespace kiln
