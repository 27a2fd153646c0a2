// Forward propagation and data gradient as an implicit matrix product, on the tensor cores and on
// the FMA units.
#pragma once

#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/engine.hpp"

namespace kiln {

class ImplicitGemmMmaEngine final : public Engine {
 public:
  const char* name() const override { return "implicit_gemm_mma"; }
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

class ImplicitGemmFmaEngine final : public Engine {
 public:
  const char* name() const override { return "implicit_gemm_fma"; }
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

// The proposal for one tile and split count, whether or not the choice would take it.
std::variant<Proposal, Refusal> propose_gemm(const ConvolutionProblem& problem,
                                             const GemmTile& tile, const DeviceDescription& device,
                                             int parts);

}  // namespace kiln
