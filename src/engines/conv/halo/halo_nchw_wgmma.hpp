// Forward propagation and data gradient in NCHW by wgmma, with the source's halo in shared memory.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engines/conv/halo/wgmma_engine.hpp"

namespace kiln {

class HaloNchwWgmmaEngine final : public HaloWgmmaEngine {
 public:
  const char* name() const override { return "halo_nchw_wgmma"; }

 private:
  std::optional<Refusal> layout_refusal(const ConvolutionProblem& problem,
                                        const Gather& gather) const override;
  std::vector<Shapes> shapes(const ConvolutionProblem& problem,
                             const Gather& gather) const override;
  std::size_t alignment(const ConvolutionProblem& problem) const override;
};

}  // namespace kiln
