// Forward propagation and data gradient of tensors whose channels lie apart (NCHW), on the tensor
// cores, with the source's halo in shared memory.
#pragma once

#include <span>
#include <vector>

#include "engines/engine.hpp"
#include "engines/gather.hpp"
#include "engines/halo_tile.hpp"

namespace kiln {

class HaloGemmPlanarEngine final : public Engine {
 public:
  const char* name() const override { return "halo_gemm_planar"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

std::span<const HaloShape> planar_halo_shapes(const ConvolutionProblem& problem);

// How many taps of the filter may be loaded together, which lie side by side in it: all of them,
// and a row.
std::vector<int> tap_groups(const Gather& gather);

// All tiles of a problem that the engine does not refuse, as they lie on it.
std::vector<HaloTile> planar_halo_tiles(const ConvolutionProblem& problem, const Gather& gather,
                                        const DeviceDescription& device);

}  // namespace kiln
