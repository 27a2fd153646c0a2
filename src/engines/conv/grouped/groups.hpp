// Which problems are small groups for the tensor cores.
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

inline constexpr std::int64_t octet = 8;  // channels, 16 bytes
inline constexpr std::int64_t warp_octets = 4, warp_pixels = 32;

// Why the tensor cores of a device have no products of its type, a clause; "" if they have.
std::string half_products_refusal(const ConvolutionProblem& problem,
                                  const DeviceDescription& device);

// The same of products of f32, too: one of TF32, or three where that is as good as f32.
std::string warp_products_refusal(const ConvolutionProblem& problem,
                                  const DeviceDescription& device);

// Octets of a block: as many as leave fewest idle, 4 or 8.
std::int64_t octets_of(std::int64_t channels);

}  // namespace kiln
