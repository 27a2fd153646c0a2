// The moments of a convolution's result as a problem of their own.
#pragma once

#include "problem/convolution.hpp"
#include "problem/normalization.hpp"

namespace kiln {

// Of a convolution with or without moments: those of the tensor that it writes, which is "x" there.
NormalizationProblem moments_of_result(const ConvolutionProblem& problem);

}  // namespace kiln
