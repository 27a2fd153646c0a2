// A filter gradient of stride 1 whose x and dy change places: the same sums, over the pixels of x,
// of a filter the other way round. So what is few can be x's, whose products read least: a tap of
// few channels of dy reads all channels of x anew.
#pragma once

#include "codegen/kernel_spec.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Whether dy has fewer channels, and the filter gradient can be exchanged.
bool exchanges_roles(const ConvolutionProblem& problem);

// Itself, or exchanged. What lies outside its x is no product of the problem's.
ConvolutionProblem with_roles_exchanged(const ConvolutionProblem& problem);

// A proposal of the exchanged problem, its operands as the problem has them.
Proposal for_exchanged_roles(Proposal proposal);

}  // namespace kiln
