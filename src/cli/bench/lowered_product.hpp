// The GEMM of a convolution of one group whose image has been lowered (im2col).
#pragma once

#include <cstdint>

#include "problem/convolution.hpp"

namespace kiln::cli::bench {

// c = op(a) op(b) of column-major matrices, op(a) m x k, op(b) k x n. The filter is CRS x K. In
// NHWC an image has its channels contiguous, K x P and CRS x P for the P pixels of all images; in
// NCHW its pixels, P x K and P x CRS.
struct LoweredProduct {
  enum Matrix : int { filter, lowered, image };
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  std::int64_t lda, ldb, ldc;  // elements from one column to the next
  Matrix a, b, c;
};

LoweredProduct lowered_product(const ConvolutionProblem& problem, bool nhwc);

}  // namespace kiln::cli::bench
