// Files that describe devices, for chips that Kiln does not know: written on the target machine,
// read on the machine that compiles kernels for it.
#pragma once

#include <string>

#include "device/device.hpp"

namespace kiln::cli {

std::string describe_as_json(const DeviceDescription& device);

// Throws BAD_PARAM naming the field, or UsageError if the file cannot be read.
DeviceDescription read_device_file(const std::string& path);

}  // namespace kiln::cli
