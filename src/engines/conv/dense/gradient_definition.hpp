// What a filter gradient's sums are by their definition, for those that are added up once more
// (kernel_sources/conv/geometry/gradient_sum.cuh).
#pragma once

#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Constants of the kernel: the definition, and when sums are added up so.
void add_gradient_definition(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                             const Gather& gather);

}  // namespace kiln
