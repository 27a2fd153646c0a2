// What the engines of halo tiles share: the choice of a tile, and the kernel and launch that follow
// from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engines/engine.hpp"
#include "engines/gather.hpp"
#include "engines/halo_tile.hpp"

namespace kiln {

// f32 in three products.
bool halo_splits(const ConvolutionProblem& problem);

// Why no halo tile is for the problem, whatever its layout; "" if one may be.
std::string halo_refusal(const ConvolutionProblem& problem, const Gather& gather,
                         const DeviceDescription& device);

// Those of the shapes that fit into shared memory as they lie on the problem (lay_halo_tile), and
// their offsets into 32 bits.
void add_halo_tiles(std::vector<HaloTile>& tiles, std::span<const HaloShape> shapes, int tap_group,
                    const ConvolutionProblem& problem, const Gather& gather,
                    const DeviceDescription& device);

// Candidates of the tiles, by their number, in every number of parts.
std::variant<std::vector<Candidate>, Refusal> halo_candidates(std::span<const HaloTile> tiles,
                                                              const ConvolutionProblem& problem,
                                                              const Gather& gather,
                                                              const DeviceDescription& device);

// kernel: conv/KERNEL.cu and the entry in it. alignment: bytes, of every operand.
Proposal propose_halo(const char* kernel, std::size_t alignment, const HaloTile& tile,
                      const ConvolutionProblem& problem, const Gather& gather, int parts);

}  // namespace kiln
