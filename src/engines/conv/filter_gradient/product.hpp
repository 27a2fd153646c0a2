// The filter gradient as a matrix product: M is the filters of a group, N the columns of dw
// (channels and taps), and the reduction runs over the pixels of all images.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"
#include "problem/problem.hpp"

namespace kiln {

bool is_wgrad(const Problem& problem);

// Products of a sum at a usual batch size. The kernel is written for this one, because it serves
// all batch sizes.
std::int64_t usual_reduction(const ConvolutionProblem& problem);
// Products of a sum at batch size 1.
std::int64_t least_reduction(const ConvolutionProblem& problem);

// Tiles of m filters x n columns.
std::int64_t wgrad_tile_count(const ConvolutionProblem& problem, int m, int n);

// The refusal if a group has fewer than `least` filters, which are the rows of a tile.
Refusal filters_refusal(const ConvolutionProblem& problem, std::int64_t least);

// The refusal if a launch of tiles of m x n with this split count has too many blocks.
Refusal wgrad_count_refusal(const ConvolutionProblem& problem, int m, int n, int parts);

// The largest offset, in elements, that a tile of m x n computes within dw, within an image of dy,
// or within an image of x, its taps included.
std::int64_t wgrad_largest_offset(const Gather& gather, int m, int n);

// Adds the constants that decode tiles, pixels and columns of dw
// (kernel_sources/conv/geometry/gather_index.cuh).
void add_wgrad_constants(std::vector<Constant>& constants, const Gather& gather, int m, int n,
                         bool channels_inner);

}  // namespace kiln
