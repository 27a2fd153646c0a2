// Filter gradient as an implicit GEMM on the FP32/FP64 FMA units.
#pragma once

#include "engines/engine.hpp"
#include "engines/gemm_tile.hpp"

namespace kiln {

class WgradMmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

class WgradFmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
};

// All tiles that a filter gradient of a type may take.
std::vector<GemmTile> wgrad_tiles(DataType type);

// The proposal of one tile, whichever the engine would choose; `parts` of the reduction, 0 to
// choose.
std::variant<Proposal, Refusal> propose_wgrad(const ConvolutionProblem& problem,
                                              const GemmTile& tile, const DeviceDescription& device,
                                              int parts = 0);

}  // namespace kiln
