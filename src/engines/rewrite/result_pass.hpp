// Convolutions, of any kind, with an epilogue's operation that needs whole channels of the result:
// the convolution without it by the engine with the best estimate, then a pass over the result.
#pragma once

#include "engines/rewrite/rewrite.hpp"

namespace kiln {

class ResultPass : public Rewrite {
 public:
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(const ConvolutionProblem& problem,
                                                           const InnerChoice& inner) const override;
  Proposal make(const ConvolutionProblem& problem, const InnerChoice& inner,
                const Candidate& candidate) const override;

 private:
  virtual bool asks(const ConvolutionEpilogue& epilogue) const = 0;
  virtual const char* what() const = 0;  // is made by the pass
};

// Moments of the result.
class MomentsPass final : public ResultPass {
 public:
  const char* name() const override { return "moments_pass"; }
  bool makes_moments() const override { return true; }

 private:
  bool asks(const ConvolutionEpilogue& epilogue) const override { return epilogue.moments; }
  const char* what() const override { return "moments"; }
};

// The gradient of an activation behind a normalization, and its sums.
class GradientPass final : public ResultPass {
 public:
  const char* name() const override { return "gradient_pass"; }
  bool takes_gradient() const override { return true; }

 private:
  bool asks(const ConvolutionEpilogue& epilogue) const override {
    return epilogue.gradient.has_value();
  }
  const char* what() const override { return "normalization's gradient"; }
};

}  // namespace kiln
