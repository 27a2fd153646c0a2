// Tensors of the same sizes, seen as the fewest axes that still distinguish their elements.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/tensor/operand.hpp"

namespace kiln {

struct Axis {
  std::int64_t size = 1;
  std::vector<std::int64_t> strides;  // strides of each tensor, in elements
  bool reduced = false;
};

// The axes of one image (dimension 0 is left out: its size is a launch argument), outermost first
// by the strides of tensor `leading`. Axes of one element are dropped; neighbours become one where
// every tensor steps through both as through one. `reduced` marks dimensions that only join their
// like.
std::vector<Axis> image_axes(const Dims& dims, const std::vector<Dims>& strides,
                             std::size_t leading,
                             const std::array<bool, operand_rank>& reduced = {});

// The same of axes that are given, in any order: dropped, ordered and joined.
std::vector<Axis> joined_axes(std::vector<Axis> axes, std::size_t leading);

// The axes, preceded by axes of one element until there are `count`.
std::vector<Axis> padded(std::vector<Axis> axes, std::size_t count);

}  // namespace kiln
