// Forward propagation and data gradient in NCHW by mma.sync, with the source's halo in shared
// memory.
#pragma once

#include <optional>
#include <vector>

#include "engines/conv/halo/mma_engine.hpp"

namespace kiln {

class HaloNchwMmaEngine final : public HaloMmaEngine {
 public:
  const char* name() const override { return "halo_nchw_mma"; }

 private:
  Refusal layout_refusal(const ConvolutionProblem& problem, const Gather& gather) const override;
  std::vector<Shapes> shapes(const ConvolutionProblem& problem,
                             const Gather& gather) const override;
  std::size_t alignment(const ConvolutionProblem& problem) const override;
};

// f32 by wgmma with swapped operands: the filter (operand B) in shared memory, pixels (operand A)
// in registers.
class HaloNchwWgmmaSwapEngine final : public HaloMmaEngine {
 public:
  const char* name() const override { return "halo_nchw_wgmma_swap"; }

 private:
  Refusal layout_refusal(const ConvolutionProblem& problem, const Gather& gather) const override;
  Refusal products_refusal(const DeviceDescription& device) const override;
  std::vector<Shapes> shapes(const ConvolutionProblem& problem,
                             const Gather& gather) const override;
  std::size_t alignment(const ConvolutionProblem& problem) const override;
};

}  // namespace kiln
