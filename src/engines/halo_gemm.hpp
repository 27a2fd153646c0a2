// Forward propagation and data gradient of channels-last tensors on the tensor cores, with the
// source's halo in shared memory.
#pragma once

#include <span>
#include <vector>

#include "engines/engine.hpp"
#include "engines/halo_tile.hpp"

namespace kiln {

class HaloGemmEngine final : public Engine {
 public:
  const char* name() const override { return "halo_gemm"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

std::span<const HaloShape> halo_shapes(const ConvolutionProblem& problem);

// All tiles of a problem that the engine does not refuse, as they lie on it.
std::vector<HaloTile> channels_last_halo_tiles(const ConvolutionProblem& problem,
                                               const Gather& gather,
                                               const DeviceDescription& device);

}  // namespace kiln
