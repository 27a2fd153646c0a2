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
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

std::span<const HaloShape> planar_halo_shapes(const ConvolutionProblem& problem);

// How many taps of the filter may be loaded together, which lie side by side in it: all of them,
// and a row.
std::vector<int> tap_groups(const Gather& gather);

}  // namespace kiln
