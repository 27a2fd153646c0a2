// The constants that every forward-convolution kernel shares: sizes, strides, taps, divisors.
#pragma once

#include <vector>

#include "codegen/kernel_spec.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// element_t, compute_t; the strides of x, w and y; CHANNELS and FILTERS (of a group); IN_*,
// FILTER_*, OUT_O; STRIDE_*; and the walk over taps: ORIGIN_* is the position in x of the first tap
// of output 0, STEP_* what the next tap adds. A flipped filter (convolution mode) walks x backwards
// from the far end, so that kernels know no modes.
std::vector<Constant> forward_constants(const ConvolutionProblem& problem);

// A one-dimensional launch with ForwardParams: operands x, w, y, then alpha and beta.
LaunchSpec forward_launch(const ConvolutionProblem& problem, std::int64_t blocks,
                          std::uint32_t threads, std::uint32_t shared_memory);

// The span, in elements, of one image of a tensor, from its strides and sizes (batch left out).
std::int64_t image_span(const std::array<std::int64_t, 5>& strides, std::int64_t channels,
                        const Spatial& sizes);

// Whether some tap of some output reads outside x along a dimension (0 depth, 1 height, 2 width).
bool leaves_input(const ConvolutionProblem& problem, int dimension);

}  // namespace kiln
