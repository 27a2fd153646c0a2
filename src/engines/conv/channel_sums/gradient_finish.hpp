// The step that joins the sums that the blocks of a convolution with a normalization's gradient
// have left in the workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "codegen/kernel_spec.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Bytes that a block leaves for each of its rows.
inline constexpr std::size_t partial_sums_bytes = 8;

// What the kernel of the first step knows of the gradient: its constants.
void add_gradient_constants(KernelSpec& spec, const NormalizationGradient& gradient);

// The workspace begins with [part][row] sums.
struct PartsOfSums {
  std::int64_t rows;  // of a part; the first ones are the channels
  std::int64_t parts;
  std::int64_t at_most;  // parts, at any batch size
};
Step gradient_finish(const PartsOfSums& of, const ConvolutionProblem& problem,
                     const std::string& engine);

}  // namespace kiln
