// The canonical matrix product: a plain value that the choice reads.
#pragma once

#include <string>
#include <vector>

#include "problem/convolution.hpp"

namespace kiln {

// The fields of a matrix product's descriptor.
struct MatmulSpec {
  kilnMathMode_t math = KILN_MATH_DEFAULT;
  std::int64_t alignment = 16;  // bytes, of every operand
};

// In elements: from one matrix to the next, one row to the next, one column to the next.
struct MatrixStrides {
  std::int64_t batch = 0, row = 0, column = 0;
  friend bool operator==(const MatrixStrides&, const MatrixStrides&) = default;
};

// With s(m, n) = sum over k of a[m, k] * b[k, n], of each matrix of a batch:
//   d = epilogue(alpha * s)
// where the epilogue's bias has one element a column of d, which all matrices share. Transposes are
// strides. Equal problems compare equal: strides of dimensions of size 1 are 0, but for those of
// the rows of a, d and z without a batch, because a kernel serves every number of rows, and of
// the batch.
struct MatmulProblem {
  DataType type = KILN_DATA_FLOAT, d_type = KILN_DATA_FLOAT;  // of a and b; of d, z and the bias
  int rank = 2;                                   // the caller's dimensions: 2, or 3 with a batch
  std::int64_t batch = 1;                         // may be 0
  std::int64_t rows = 0, columns = 0, inner = 0;  // of d; a has `inner` columns. rows may be 0
  kilnMathMode_t math = KILN_MATH_DEFAULT;        // TF32 only for f32
  std::int64_t alignment = 16;                    // bytes that every operand is aligned to
  ConvolutionEpilogue epilogue;                   // without moments and gradient
  MatrixStrides a, b, d, z;                       // z's are 0 if there is no z
  std::int64_t bias_stride = 0;  // from one column's bias to the next; 0 if there is none

  double flops() const;  // 2 * batch * rows * columns * inner

  friend bool operator==(const MatmulProblem&, const MatmulProblem&) = default;
};

// Checks the tensors against each other and makes the canonical value, or throws BAD_PARAM (for an
// epilogue also NOT_SUPPORTED). a {M, K}, b {K, N} and d {M, N}, or each with a batch's size before
// them, which of a and b may be 1. A bias is {1, N}, or {1, 1, N}. The result of f16 or bf16
// matrices may be f32.
MatmulProblem make_matmul(const MatmulSpec& spec, const Tensor& a, const Tensor& b, const Tensor& d,
                          const EpilogueList& epilogue = {});

// The operands in the order of an execution: a, b, then z and bias, if there are any, and d.
std::vector<Operand> operands_of(const MatmulProblem& problem);

// The arguments of `kiln matmul`: flags for all that differs from the defaults, and the sizes of a
// and b, "512x1024:1024x4096".
std::string to_line(const MatmulProblem& problem);

}  // namespace kiln
