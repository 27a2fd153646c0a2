// Folds tensors of more dimensions than kernels support into tensors of fewer.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/tensor/tensor.hpp"

namespace kiln {

// Dimensions that must not be joined with others.
enum class Fold : std::uint8_t {
  any,    // none: pointwise operations and reductions (but the batch stays apart if possible)
  image,  // the batch: each image is a row of its own
  space   // batch and channels
};

// The same elements at the same addresses, in at most operand_rank dimensions. Dimensions of one
// element are left out. Two dimensions are joined if every tensor is contiguous across them or is
// broadcast (its size is 1) along both. Dimensions are ordered by the strides of tensors[leading],
// which has every dimension's full size. Tensors of at most operand_rank dimensions are returned
// unchanged. Throws NOT_SUPPORTED if more dimensions are left.
std::vector<Tensor> folded(const std::vector<Tensor>& tensors, std::size_t leading, Fold fold);

}  // namespace kiln
