// All kernels that stand in for those of a shape, to be compiled ahead of every problem.
#pragma once

#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"

namespace kiln {

// Those that convolutions get on the device, each once; with epilogues of a bias at most and
// without a residual. What a stand-in needs besides, for rarer problems, is compiled when it is
// first asked for, once for all shapes.
std::vector<KernelSpec> stand_in_kernels(const DeviceDescription& device);

}  // namespace kiln
