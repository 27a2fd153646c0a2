// The parameter struct of one launch: as the engine left it, with its holes filled.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "problem/scalars.hpp"

namespace kiln {

// What every driver takes. A launch keeps a buffer of that size on its stack.
inline constexpr std::size_t most_parameter_bytes = 4096;
struct alignas(tensor_map_alignment) ParameterBuffer {
  std::array<std::byte, most_parameter_bytes> bytes;
};

// Once, when a plan is finalized: the tensor maps, still without addresses. Throws INTERNAL_ERROR
// where there are too many parameters, and what encode_map() throws.
void encode_maps(LaunchSpec& launch, const Device& device);

// For one execution, into `buffer`: operands, workspace, scalars, the addresses of the maps. What a
// hole for an address held before, 0 unless the engine wrote otherwise, is the bytes into that
// tensor where it shall point. No allocation, no lock.
std::span<const std::byte> fill_parameters(const LaunchSpec& launch, const Device& device,
                                           std::span<void* const> operands, void* workspace,
                                           const Scalars& scalars, ParameterBuffer& buffer);

}  // namespace kiln
