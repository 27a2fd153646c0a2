// The matrix product (GEMM) of a convolution with one group whose image has been lowered (im2col).
#pragma once

#include <cstdint>

#include "problem/convolution.hpp"

namespace kiln::cli::bench {

// c = op(a) op(b) for column-major matrices; op(a) is m x k, op(b) is k x n. The filter is CRS x K.
// With P pixels in all images, y and the lowered x are K x P and CRS x P in NHWC, where channels
// are contiguous, and P x K and P x CRS in NCHW, where pixels are.
struct LoweredProduct {
  enum Matrix : int { filter, lowered, image };
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  std::int64_t lda, ldb, ldc;  // elements from one column to the next
  Matrix a, b, c;
};

LoweredProduct lowered_product(const ConvolutionProblem& problem, bool nhwc);

}  // namespace kiln::cli::bench
