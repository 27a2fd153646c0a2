// Problem lines of dimension-wise operations, as benchdnn writes them: a shape an operand,
// "16x64x112x112:1x64x1x1", or one for all, and perhaps a name, "16x64_n"mine""; and the flags in
// front that tell the operands apart.
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

// One to `most` shapes of 1 to KILN_DIM_MAX sizes each. Throws BAD_PARAM whose sentence names the
// column (from 1), what stands there and what was expected.
ShapeLine parse_shape_line(std::string_view line, std::size_t most);

// The shapes of operands of `rank` dimensions of space; one alone if all have it.
std::string print_shapes(const std::vector<Operand>& operands, int rank);

// "--dt f16 --layout nhwc --x-strides 1:2:3:4 ", each only where it differs from f32, from nchw,
// from dense; types and layouts that differ between operands as "f32:f16" and "nchw:nhwc".
std::string print_operand_flags(const std::vector<Operand>& operands, int rank);

}  // namespace kiln
