// What the engines of halo tiles share: the choice of a tile, and the kernel and launch that follow
// from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "engines/engine.hpp"
#include "engines/gather.hpp"
#include "engines/halo_tile.hpp"

namespace kiln {

// f32 in three products.
bool halo_splits(const ConvolutionProblem& problem);

// Why no halo tile is for the problem, whatever its layout; "" if one may be.
std::string halo_refusal(const ConvolutionProblem& problem, const Gather& gather,
                         const DeviceDescription& device);

// The best shape as it lies on the problem (lay_halo_tile); none if no tile fits into shared memory
// or its offsets into 32 bits.
std::optional<HaloTile> choose_halo_tile(std::span<const HaloShape> shapes, int tap_group,
                                         const ConvolutionProblem& problem, const Gather& gather,
                                         const DeviceDescription& device);

// kernel: conv/KERNEL.cu and the entry in it. alignment: bytes, of every operand. parts: of the
// reduction, 0 to choose.
std::variant<Proposal, Refusal> propose_halo(const char* kernel, std::size_t alignment,
                                             const HaloTile& tile,
                                             const ConvolutionProblem& problem,
                                             const Gather& gather, const DeviceDescription& device,
                                             int parts = 0);

}  // namespace kiln
