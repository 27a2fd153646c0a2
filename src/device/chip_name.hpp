// The word that names a device's chip in a problem line, and that --arch takes.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace kiln {

// "host"; a chip of the table, "h100"; or the architecture and the number of multiprocessors of
// any other chip, "sm_90a:66". known_architecture() reads the last two back, as a chip for which
// engines choose as for this one.
std::string chip_name(const DeviceDescription& device);

// Every name that known_architecture() takes: "sm_75", "t4", ...
std::vector<std::string> known_chip_names();

}  // namespace kiln
