// Stand-ins for the direct engines. Except for data gradients of very many phases, they take every
// legal problem.
#pragma once

#include "engines/conv/direct/direct.hpp"
#include "engines/conv/direct/wgrad_direct.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/stand_in/stand_in_engine.hpp"

namespace kiln {

class StandInDirectEngine final : public StandInEngine {
 public:
  const char* name() const override { return "stand_in_direct"; }

 private:
  const Engine& exact() const override { return direct_; }
  Refusal refusal(const ConvolutionProblem& problem) const override;
  bool generalize(Proposal& proposal, const DeviceDescription& device) const override;

  RecipeEngine<DirectTile> direct_{direct_gather};
};

class StandInWgradDirectEngine final : public StandInEngine {
 public:
  const char* name() const override { return "stand_in_wgrad_direct"; }

 private:
  const Engine& exact() const override { return direct_; }
  Refusal refusal(const ConvolutionProblem&) const override { return {}; }
  bool generalize(Proposal& proposal, const DeviceDescription& device) const override;

  RecipeEngine<WgradDirectTile> direct_{wgrad_direct};
};

}  // namespace kiln
