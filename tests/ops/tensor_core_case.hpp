// Convolutions on the tensor cores: the arithmetics that they come in, and small integers, whose
// sums every one of them has exactly.
#pragma once

#include <boost/test/unit_test.hpp>

#include "forward_case.hpp"

namespace test {

struct Arithmetic {
  DataType type;
  kilnMathMode_t math;
};
inline constexpr Arithmetic arithmetics[] = {{KILN_DATA_FLOAT, KILN_MATH_DEFAULT},
                                             {KILN_DATA_FLOAT, KILN_MATH_TF32},
                                             {KILN_DATA_HALF, KILN_MATH_DEFAULT},
                                             {KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT}};

inline ConvolutionProblem problem_in(const char* line, const Arithmetic& arithmetic,
                                     kilnTensorFormat_t layout,
                                     ConvolutionPass pass = ConvolutionPass::fprop,
                                     kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  ConvolutionOperands o =
      describe_convolution(parse_convolution_line(line), arithmetic.type, layout, mode);
  o.spec.math = arithmetic.math;
  switch (pass) {
    case ConvolutionPass::dgrad: return make_convolution_dgrad(o.spec, o.w, o.y, o.x);
    case ConvolutionPass::wgrad: return make_convolution_wgrad(o.spec, o.x, o.y, o.w);
    default: return make_convolution(o.spec, o.x, o.w, o.y);
  }
}

inline OperationCase integers_of(const ConvolutionProblem& problem, unsigned seed = 1) {
  OperationCase item(problem);
  for (std::size_t i = 0; i + 1 < item.tensors.size(); ++i)
    item.tensors[i].fill_integers(seed + static_cast<unsigned>(i), 2);
  return item;
}

inline void check_integers(const OperationCase& item, const char* engine) {
  const std::string fault = difference(item.run_plan(engine), item.expected());
  BOOST_TEST(fault.empty(), engine << ", " << text_of(item.problem) << ": " << fault);
}

}  // namespace test
