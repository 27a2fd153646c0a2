// Which kernels check their f32 sums before storing them and recompute those that are not finite by
// their definition (kernel_sources/conv/mma/scaled_sums.cuh).
#pragma once

#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// 3xTF32 kernels all do. In TF32 the tensor cores read a NaN whose upper 19 bits are those of an
// infinity as that infinity; kernels that copy single elements (`scalar_copies`) check for it,
// because it costs them no measurable time. The others would lose 2 to 20% and do not check (see
// KILN_MATH_TF32). Kernels that put zeros in the place of products that do not exist (`gaps`) check
// for every type.
inline void add_checked_constant(std::vector<Constant>& constants,
                                 const ConvolutionProblem& problem, bool tensor_cores,
                                 bool scalar_copies, bool gaps = false) {
  const bool in_one = problem.type() == KILN_DATA_FLOAT && problem.math == KILN_MATH_TF32;
  const bool checked = is_split(problem) || (in_one && scalar_copies) || gaps;
  constants.push_back({"CHECKED", tensor_cores && checked,
                       "sums that are not finite are computed again by their definition"});
}

}  // namespace kiln
