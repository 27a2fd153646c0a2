// Filter gradient as an implicit matrix product, on the tensor cores and on the FMA units.
#pragma once

#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/engine.hpp"

namespace kiln {

class WgradImplicitGemmMmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_implicit_gemm_mma"; }
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

class WgradImplicitGemmFmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_implicit_gemm_fma"; }
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

// All tiles that a filter gradient of a type may take.
std::vector<GemmTile> wgrad_tiles(DataType type);

// The proposal for one tile at a split count of `parts`, whether or not the engine would choose it.
std::variant<Proposal, Refusal> propose_wgrad(const ConvolutionProblem& problem,
                                              const GemmTile& tile, const DeviceDescription& device,
                                              int parts);

}  // namespace kiln
