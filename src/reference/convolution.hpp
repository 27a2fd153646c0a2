// The double-precision reference that every kernel is compared with: the defining sum, written to
// be read, threaded over outputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/convolution.hpp"

namespace kiln::reference {

// One output of the forward convolution: the sum, and the sum of absolute values of its products,
// which is the scale that rounding errors are measured against.
struct Accumulated {
  double value = 0, magnitude = 0;
};

// The outputs at `indices` (flat, in the order n, k, o, p, q; densely numbered), before alpha and
// beta. x and w are laid out by the problem's strides. 0 threads: as many as the machine has.
std::vector<Accumulated> forward(const ConvolutionProblem& problem, const double* x,
                                 const double* w, std::span<const std::int64_t> indices,
                                 int threads = 0);

// The same on tensors of the problem's own data type, which saves a copy of large ones.
std::vector<Accumulated> forward(const ConvolutionProblem& problem, const void* x, const void* w,
                                 std::span<const std::int64_t> indices, int threads = 0);

}  // namespace kiln::reference
