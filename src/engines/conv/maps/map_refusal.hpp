// Why a gather's tensors cannot be read by tensor maps. The functions return the reason, a clause;
// "" if they can.
#pragma once

#include <string>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Why TMA cannot read a tensor with these strides, {N, channel, D, H, W}.
Refusal map_strides_refusal(const char* tensor, DataType type, const Dims& strides);
// Why no tensor map can describe the source of a phase.
Refusal map_phase_refusal(const Gather& gather, const Gather::Phase& phase);
// Why no tensor map can have the convolution's strides as its traversal strides.
Refusal traversal_stride_refusal(const Gather& gather);

// Why the device's driver cannot encode tensor maps.
Refusal copy_engine_refusal(const DeviceDescription& device);

}  // namespace kiln
