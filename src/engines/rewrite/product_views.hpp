// A matrix product is a convolution of one tap, of the same matrices seen as tensors: the rows of d
// are pixels and its columns channels, or the other way around, or d is a filter's gradient, whose
// pixels are the inner dimension. Nothing is copied. The choice takes the least over all views, so
// that a product has the engines of convolutions, by their names.
//
//   d = a b, in elements          as it lies                      reads as
//   rows of a, columns of b       a linear layer                  fprop: x = a, w = b transposed
//   rows of a, rows of b          its data gradient               dgrad: dy = a, w = b
//   columns of a, rows of b       its filter gradient             wgrad: dy = a transposed, x = b
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "problem/convolution.hpp"
#include "problem/matmul.hpp"

namespace kiln {

struct ProductView {
  ConvolutionProblem problem;
  bool exchanged = false;      // the convolution's first operand is b, its second a
  std::string_view tile = "";  // what a tile's name ends with, so that views have their own
};

// The views that kernels may be fast for, the usual one first: at least one that is a forward pass
// or a data gradient, which takes every epilogue.
std::vector<ProductView> product_views(const MatmulProblem& problem);

// The number of rows, of more than 128, at which the kernel for `rows` is chosen: the next of four
// sizes from a power of two to the next one, 160, 192, 224, 256, 320. `least`: the smallest number
// with the same.
std::int64_t rows_above(std::int64_t rows, std::int64_t& least);

// Makes the proposal of a view's convolution one of the product.
void name_operands(Proposal& proposal, const ProductView& view);

}  // namespace kiln
