// The moments of a forward pass's result in the epilogue of dense_wgmma's tiles
// (kernel_sources/conv/dense/epilogue/tile_moments.cuh).
#pragma once

#include <string>

#include "engines/conv/dense/epilogue/row_parts.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Why the moments cannot be made there, a clause; "" if they can, or are not asked for.
Refusal dense_moments_refusal(const ConvolutionProblem& problem, const Gather& gather);

// Turns the proposal of a plain forward pass into one whose kernel leaves moments of each block,
// which a second step joins.
Proposal with_moments(Proposal plain, const RowParts& parts, const ConvolutionProblem& problem,
                      const DeviceDescription& device);

}  // namespace kiln
