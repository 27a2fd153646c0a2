// A tensor or filter as the caller described it: type, sizes and strides, outermost first.
#pragma once

#include <array>
#include <cstdint>

#include "problem/types.hpp"

namespace kiln {

using TensorDims = std::array<std::int64_t, KILN_DIM_MAX>;

// The five dimensions of problems and kernels: batch, channels, depth, height, width. Tensors of
// fewer dimensions fill up with sizes of 1, those of more are folded (problem/tensor/fold.hpp).
inline constexpr int operand_rank = 5;
using Dims = std::array<std::int64_t, operand_rank>;

struct Tensor {
  DataType type = KILN_DATA_FLOAT;
  int rank = 0;          // 1 to KILN_DIM_MAX; 0: never set
  TensorDims dims{};     // tensors {N, C, space...}; filters {K, C per group, space...}
  TensorDims strides{};  // in elements

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// Throws BAD_PARAM with `name` ("xDesc") in the sentence. first_may_be_zero: N of an empty batch.
void check_tensor(const Tensor& tensor, const char* name, bool first_may_be_zero);

// The dense strides of a format, for sizes whose product fits.
TensorDims dense_strides(kilnTensorFormat_t format, int rank, const TensorDims& dims);

// Elements from the first to the last one addressed, both included; 0 for an empty tensor.
std::int64_t span_elements(const Tensor& tensor);

// True if two index tuples reach one address. Exact for every dense, padded or windowed layout in
// any dimension order, and for interleaved ones as far as a bounded search goes; what lies beyond
// it counts as overlapping. Takes a checked tensor.
bool overlaps_itself(const Tensor& tensor);

}  // namespace kiln
