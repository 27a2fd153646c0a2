// Folds tensors of more dimensions than kernels have into tensors of fewer.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/tensor/tensor.hpp"

namespace kiln {

// Dimensions that must not be joined with others.
enum class Fold : std::uint8_t {
  any,    // none has to: pointwise operations and reductions; the batch does where it can
  image,  // the batch: each image is a row of its own
  space   // batch and channels
};

// The same elements at the same addresses, in at most operand_rank dimensions: those of one element
// are left out, and two become one where every tensor steps through both as through one, or is
// broadcast (its size is 1) along both. They are ordered by the strides of tensors[leading], which
// has every dimension's full size. Tensors of at most operand_rank dimensions come back as they
// are. Throws NOT_SUPPORTED if more dimensions are left.
std::vector<Tensor> folded(const std::vector<Tensor>& tensors, std::size_t leading, Fold fold);

}  // namespace kiln
