// All kernels of stand-ins, to be compiled ahead of all problems.
#pragma once

#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"

namespace kiln {

// The kernels that convolutions get on the device, each once. Their epilogues have at most a bias,
// and no residual or activation. Kernels for rarer problems are compiled when they are first asked
// for, once for all shapes.
std::vector<KernelSpec> stand_in_kernels(const DeviceDescription& device);

}  // namespace kiln
