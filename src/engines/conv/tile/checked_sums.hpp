// Which kernels look at sums of f32 on their way out of the tensor cores, and add up those by their
// definition that are not finite (kernel_sources/conv/mma/scaled_sums.cuh).
#pragma once

#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// In three products all must. In one (TF32), where a NaN whose upper bits are an infinity's is read
// as one, those do that bring operands to shared memory element by element, and lose no time by it
// that could be measured. Kernels that copy 16 bytes at a time, those of few channels or rows and
// filter gradients would lose 2 to 20%: there such a NaN counts as that infinity (KILN_MATH_TF32).
// And where zeros stand for products that do not exist (`gaps`), whatever the type.
inline void add_checked_constant(std::vector<Constant>& constants,
                                 const ConvolutionProblem& problem, bool tensor_cores,
                                 bool one_by_one, bool gaps = false) {
  const bool in_one = problem.type() == KILN_DATA_FLOAT && problem.math == KILN_MATH_TF32;
  const bool checked = is_split(problem) || (in_one && one_by_one) || gaps;
  constants.push_back(
      {"CHECKED", tensor_cores && checked, "sums that are not finite are added up anew"});
}

}  // namespace kiln
