// One operand of a convolution as memory: five sizes and strides, outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "problem/convolution.hpp"

namespace kiln::cli {

struct Operand {
  std::array<std::int64_t, 5> dims, strides;

  std::int64_t count() const;  // of elements
  std::int64_t span() const;   // elements of memory from the first to the last one addressed
  std::int64_t offset(std::int64_t index) const;  // of the element numbered densely

  // Which elements of the span belong to the tensor; empty if all do.
  std::vector<bool> members() const;
};

Operand x_of(const ConvolutionProblem& problem);
Operand w_of(const ConvolutionProblem& problem);
Operand y_of(const ConvolutionProblem& problem);

}  // namespace kiln::cli
