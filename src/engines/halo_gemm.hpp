// Forward propagation and data gradient of channels-last tensors on the tensor cores, with the
// source's halo in shared memory.
#pragma once

#include <span>

#include "engines/engine.hpp"
#include "engines/halo_tile.hpp"

namespace kiln {

class HaloGemmEngine final : public Engine {
 public:
  const char* name() const override { return "halo_gemm"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

std::span<const HaloShape> halo_shapes(const ConvolutionProblem& problem);

}  // namespace kiln
