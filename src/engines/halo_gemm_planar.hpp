// Forward propagation and data gradient of tensors whose channels lie apart (NCHW), on the tensor
// cores, with the source's halo in shared memory.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class HaloGemmPlanarEngine final : public Engine {
 public:
  const char* name() const override { return "halo_gemm_planar"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
