// A filter gradient of stride 1 is the same sums with x and dy exchanged and the filter flipped.
// The exchange makes the operand with few channels x, which is cheaper: with few channels of dy,
// each tap would read all channels of x again.
#pragma once

#include "codegen/kernel_spec.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Whether dy has fewer channels than x and the problem allows the exchange.
bool exchanges_roles(const ConvolutionProblem& problem);

// The exchanged problem, or `problem` itself if exchanges_roles() does not hold. A kernel must
// leave out the products with the exchanged problem's padding: the original has no such products,
// and an infinity times a padding zero would be a NaN.
ConvolutionProblem with_roles_exchanged(const ConvolutionProblem& problem);

// A proposal for the exchanged problem, with its operands put back in the original order.
Proposal for_exchanged_roles(Proposal proposal);

}  // namespace kiln
