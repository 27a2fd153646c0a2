// A tensor or filter as the caller described it: type, sizes and strides, outermost first.
#pragma once

#include <array>
#include <cstdint>

#include "problem/types.hpp"

namespace kiln {

using TensorDims = std::array<std::int64_t, KILN_DIM_MAX>;

// The five dimensions of problems and kernels: batch, channels, depth, height, width. Tensors of
// fewer dimensions get sizes of 1; tensors of more are folded (problem/tensor/fold.hpp).
inline constexpr int operand_rank = 5;
using Dims = std::array<std::int64_t, operand_rank>;

struct Tensor {
  DataType type = KILN_DATA_FLOAT;
  int rank = 0;          // 1 to KILN_DIM_MAX; 0: never set
  TensorDims dims{};     // tensors {N, C, space...}; filters {K, C per group, space...}
  TensorDims strides{};  // in elements

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// Throws BAD_PARAM naming `name` ("xDesc"). first_may_be_zero: N may be 0, for an empty batch.
void check_tensor(const Tensor& tensor, const char* name, bool first_may_be_zero);

// The dense strides of a format, in elements. The product of the sizes must not overflow.
TensorDims dense_strides(kilnTensorFormat_t format, int rank, const TensorDims& dims);

// Elements from the first to the last one addressed, both included; 0 for an empty tensor.
std::int64_t span_elements(const Tensor& tensor);

// Whether two elements have one address. Exact for every dense, padded or windowed layout in any
// order of dimensions. For interleaved layouts the search is bounded, and a tensor for which it
// finds no answer counts as overlapping. Takes a checked tensor.
bool overlaps_itself(const Tensor& tensor);

}  // namespace kiln
