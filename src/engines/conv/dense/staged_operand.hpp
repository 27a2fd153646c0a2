// Proposals whose first step lays an operand out in the workspace as the second one reads it.
#pragma once

#include <cstddef>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// The operand, as the caller's tensor has it and as the workspace shall.
struct StagedOperand {
  const char* name;
  Tensor from, to;
  std::size_t bytes() const;  // of the workspace
};

// `second`, whose maps of the operand then are of the workspace, behind that step.
Proposal behind_staging(Proposal second, const ConvolutionProblem& problem,
                        const StagedOperand& operand, const DeviceDescription& device);

}  // namespace kiln
