// Constants that the dense engines' kernels share.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/maps/tensor_maps.hpp"

namespace kiln {

// Adds STEP_CHANNELS and the other constants of lines and groups.
void add_dense_lines(std::vector<Constant>& constants, const DenseLines& lines,
                     const ConvolutionProblem& problem);

// Adds SPACE and the distances between taps.
void add_dense_space(std::vector<Constant>& constants, const Gather& gather);

}  // namespace kiln
