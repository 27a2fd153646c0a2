// Stand-ins for the engines of implicit matrix products on the tensor cores, for all layouts and
// groups.
#pragma once

#include "engines/conv/implicit_gemm/implicit_gemm.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/conv/wgrad/wgrad_implicit_gemm.hpp"
#include "engines/stand_in/stand_in_engine.hpp"

namespace kiln {

class StandInGemmEngine final : public StandInEngine {
 public:
  const char* name() const override { return "stand_in_gemm"; }

 private:
  const Engine& exact() const override { return gemm_; }
  Refusal refusal(const ConvolutionProblem& problem) const override;
  void select(std::vector<Candidate>& all, const ConvolutionProblem& problem,
              const DeviceDescription& device) const override;
  bool generalize(Proposal& proposal, const DeviceDescription& device) const override;

  RecipeEngine<GemmTile> gemm_{implicit_gemm_mma};
};

class StandInWgradGemmEngine final : public StandInEngine {
 public:
  const char* name() const override { return "stand_in_wgrad_gemm"; }

 private:
  const Engine& exact() const override { return gemm_; }
  Refusal refusal(const ConvolutionProblem& problem) const override;
  void select(std::vector<Candidate>& all, const ConvolutionProblem& problem,
              const DeviceDescription& device) const override;
  bool generalize(Proposal& proposal, const DeviceDescription& device) const override;

  RecipeEngine<GemmTile> gemm_{wgrad_implicit_gemm_mma};
};

}  // namespace kiln
