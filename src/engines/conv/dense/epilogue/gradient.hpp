// The gradient of an activation behind a normalization in the epilogue of dense_wgmma's tiles
// (kernel_sources/conv/dense/epilogue/tile_gradient.cuh).
#pragma once

#include <string>

#include "engines/conv/dense/epilogue/row_parts.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Why it cannot be taken there, a clause; "" if it can, or is not asked for.
Refusal dense_gradient_refusal(const ConvolutionProblem& problem, const Gather& gather);

// Turns the proposal of a convolution without it into one whose kernel takes it and leaves the sums
// of each block, which a second step joins.
Proposal with_gradient(Proposal plain, const RowParts& parts, const ConvolutionProblem& problem,
                       const DeviceDescription& device);

}  // namespace kiln
