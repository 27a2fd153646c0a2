// What the engines of small groups and of few channels on the tensor cores share: refusals, and
// channels in octets.
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

inline constexpr std::int64_t octet = 8;  // channels of 16 bits: 16 bytes
inline constexpr std::int64_t warp_octets = 4, warp_pixels = 32;

// The reason, a clause, why mma.sync on the device does not multiply f16 or bf16 of this problem;
// "" if it does.
Refusal half_products_refusal(const ConvolutionProblem& problem, const DeviceDescription& device);

// The same for engines that also take f32, as TF32 or as 3xTF32.
Refusal warp_products_refusal(const ConvolutionProblem& problem, const DeviceDescription& device);

// Octets of a block, 4 or 8: the number that leaves fewer octets idle.
std::int64_t octets_of(std::int64_t channels);

}  // namespace kiln
