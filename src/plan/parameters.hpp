// Fills the holes of a launch's parameter struct.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "codegen/kernel_spec.hpp"
#include "codegen/loops.hpp"
#include "device/device.hpp"
#include "problem/scalars.hpp"

namespace kiln {

// The limit that every driver accepts. A launch keeps a buffer of this size on its stack.
inline constexpr std::size_t most_parameter_bytes = 4096;
struct alignas(tensor_map_alignment) ParameterBuffer {
  std::array<std::byte, most_parameter_bytes> bytes;
};

// Encodes the tensor maps, without addresses, when a plan is finalized. Throws INTERNAL_ERROR if
// the parameters exceed most_parameter_bytes, and what encode_map() throws.
void encode_maps(LaunchSpec& launch, const Device& device);

// Writes the parameters of one launch into `buffer`, that of these iterations of the loops around
// it: operands, workspace, scalars, and addresses of the maps. An address hole's previous content
// is an offset in bytes that is added to the tensor's address; it is 0 unless the engine wrote one.
// Allocates nothing and takes no lock.
std::span<const std::byte> fill_parameters(const LaunchSpec& launch, const Device& device,
                                           std::span<void* const> operands, void* workspace,
                                           const Scalars& scalars, const Iterations& iterations,
                                           ParameterBuffer& buffer);

}  // namespace kiln
