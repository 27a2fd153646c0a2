// What an epilogue does that needs a whole channel of the convolution's result, as a problem of its
// own: a pass over the result.
#pragma once

#include "problem/convolution.hpp"
#include "problem/normalization.hpp"

namespace kiln {

// Of a convolution with or without moments: those of the tensor that it writes, which is "x" there.
NormalizationProblem moments_of_result(const ConvolutionProblem& problem);

// Of a convolution with a normalization's gradient: what becomes of the tensor that the convolution
// without it writes, which is "dy" and "dx" there. The other operands have the convolution's names
// without "norm_".
NormalizationProblem gradient_of_result(const ConvolutionProblem& problem);

}  // namespace kiln
