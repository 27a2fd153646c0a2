// The definition of a filter gradient's sums, by which a kernel computes sums again that are not
// finite (kernel_sources/conv/geometry/gradient_sum.cuh).
#pragma once

#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Adds the constants of the definition, and of when it is used.
void add_gradient_definition(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                             const Gather& gather);

}  // namespace kiln
