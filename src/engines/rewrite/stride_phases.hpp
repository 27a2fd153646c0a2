// Data gradients with strides by their phases: the pixels of dx that lie at the same place of a
// stride are a data gradient without strides, of every stride-th tap, into every stride-th pixel.
// All phases read dy, nothing is copied, and any engine or rewrite computes them. For channels last
// in 16 bits, and groups whose channels the dense engines refuse: these compute all phases in one
// launch.
#pragma once

#include "engines/rewrite/rewrite.hpp"

namespace kiln {

class StridePhases final : public Rewrite {
 public:
  const char* name() const override { return "stride_phases"; }
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(const ConvolutionProblem& problem,
                                                           const InnerChoice& inner) const override;
  Proposal make(const ConvolutionProblem& problem, const InnerChoice& inner,
                const Candidate& candidate) const override;
};

}  // namespace kiln
