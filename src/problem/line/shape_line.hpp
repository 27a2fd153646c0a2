// Problem lines of operations on shapes, in benchdnn's notation: a shape for each operand,
// "16x64x112x112:1x64x1x1", or one for all, and optionally a name, "16x64_n"mine"". Flags before
// the line give types, layouts and strides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/tensor/operand.hpp"

namespace kiln {

struct ShapeLine {
  std::vector<std::vector<std::int64_t>> shapes;
  std::string name;
};

// Parses 1 to `most` shapes of 1 to KILN_DIM_MAX sizes each. Throws BAD_PARAM naming the column
// (from 1), the text there and what was expected.
ShapeLine parse_shape_line(std::string_view line, std::size_t most);

// Prints the shapes of operands with `rank` dimensions of space; only one if all are the same.
std::string print_shapes(const std::vector<Operand>& operands, int rank);

// Prints "--dt f16 --layout nhwc --x-strides 1:2:3:4 ", each only if it differs from f32, nchw and
// dense strides; types and layouts that differ between operands as "f32:f16" and "nchw:nhwc".
std::string print_operand_flags(const std::vector<Operand>& operands, int rank);

}  // namespace kiln
