// A tensor that an operation reads or writes: sizes and strides, outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "problem/tensor/tensor.hpp"

namespace kiln {

// The outer dimensions of weights that differ from one output pixel to the next: image, and the
// pixel's depth, height and width.
inline constexpr int outer_rank = 4;
using OuterDims = std::array<std::int64_t, outer_rank>;

struct Operand {
  const char* name = "";  // as in kiln.h: "x", "dy"
  DataType type = KILN_DATA_FLOAT;
  Dims dims{}, strides{};  // {N or K, C, depth, height, width}; in elements
  // A result. The last operand is the operation's own, which alpha and beta make; normalizations,
  // and convolutions with moments, have others before it.
  bool written = false;
  bool in_place = false;  // the last one may be this input if both have the same type and strides
  OuterDims outer_dims{1, 1, 1, 1}, outer_strides{};  // sizes are 1 except for such weights
  bool updated = false;   // of a result before the last one: its previous content is read
  bool positive = false;  // has a meaning for positive elements alone, as variances do

  // All axes, outermost first: the outer ones, then those of dims.
  static constexpr int axes = outer_rank + operand_rank;
  std::int64_t size(int axis) const {
    return axis < outer_rank ? outer_dims[axis] : dims[axis - outer_rank];
  }
  std::int64_t stride(int axis) const {
    return axis < outer_rank ? outer_strides[axis] : strides[axis - outer_rank];
  }
  // The first axis of the tensor: that of dims, unless it has outer dimensions.
  int first_axis() const { return outer_dims == OuterDims{1, 1, 1, 1} ? outer_rank : 0; }

  std::int64_t count() const;  // of elements
  std::int64_t span() const;   // elements of memory from the first to the last one addressed
  std::int64_t offset(std::int64_t index) const;      // of element `index`, counted densely
  std::string coordinates(std::int64_t index) const;  // of that element: "0,3,0,7,9"

  // Whether every element of the span belongs to the tensor, broadcast or not.
  bool contiguous() const;

  // Whether every element has the same offset and type as in the other.
  bool same_places(const Operand& other) const;

  // One flag per element of the span: whether it belongs to the tensor. Empty if all do.
  std::vector<bool> members() const;
};

// Makes a tensor of at most five dimensions one of five: missing dimensions of space have size 1
// and come before the others. Strides of dimensions of fewer than two elements become 0, because
// they have no effect; the batch's stride stays, because a kernel serves every batch size.
Operand make_operand(const char* name, const Tensor& tensor, bool written = false);

// The dense strides of five sizes in a format; those of dimensions of one element are 0 as well.
Dims dense_operand_strides(kilnTensorFormat_t format, const Dims& dims);

}  // namespace kiln
