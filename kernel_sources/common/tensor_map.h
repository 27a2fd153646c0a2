// A tensor map as a kernel parameter: TMA's descriptor of one tensor in global memory. On a GPU the
// driver encodes its bytes; on the host device, device/host/tensor_map.hpp does. Shared by host
// code and kernels.
#pragma once

struct alignas(64) TensorMap {
  unsigned char bytes[128];
};
