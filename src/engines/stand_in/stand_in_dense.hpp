// Stand-ins for the dense engines of channels-last tensors, for all shapes with one group.
#pragma once

#include "engines/conv/dense/dense_wgmma.hpp"
#include "engines/conv/dense/wgrad/wgrad_dense_wgmma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/stand_in/stand_in_engine.hpp"

namespace kiln {

class StandInDenseEngine final : public StandInEngine {
 public:
  const char* name() const override { return "stand_in_dense"; }

 private:
  const Engine& exact() const override { return dense_; }
  Refusal refusal(const ConvolutionProblem& problem) const override;
  void select(std::vector<Candidate>& all, const ConvolutionProblem& problem,
              const DeviceDescription& device) const override;
  bool generalize(Proposal& proposal, const DeviceDescription& device) const override;

  RecipeEngine<DenseTile> dense_{dense_nhwc_wgmma};
};

class StandInWgradDenseEngine final : public StandInEngine {
 public:
  const char* name() const override { return "stand_in_wgrad_dense"; }

 private:
  const Engine& exact() const override { return dense_; }
  Refusal refusal(const ConvolutionProblem& problem) const override;
  void select(std::vector<Candidate>& all, const ConvolutionProblem& problem,
              const DeviceDescription& device) const override;
  bool generalize(Proposal& proposal, const DeviceDescription& device) const override;

  RecipeEngine<WgradDenseTile> dense_{wgrad_dense_nhwc_wgmma};
};

}  // namespace kiln
