// Forward propagation and data gradient of channels-last tensors on the tensor cores, with the
// source's halo in shared memory.
#pragma once

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
                const Candidate& candidate) const override;
};

}  // namespace kiln
