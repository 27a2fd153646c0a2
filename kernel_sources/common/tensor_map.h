// A tensor map as a kernel's parameter: what the copy engine knows of one tensor in global memory.
// Its bytes are the device's own: the driver's on a GPU, device/host/tensor_map.hpp's on the host
// device. Shared by host code and kernels.
#pragma once

struct alignas(64) TensorMap {
  unsigned char bytes[128];
};
