// 3xTF32 with scaled sums that overflow although the result does not. Every engine computes them
// again by their definition (kernel_sources/conv/mma/scaled_sums.cuh), with every split of the
// reduction. non_finite_test.cpp tests operands that are not finite.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "ops/conv/every_engine/every_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(lost_sums)

namespace {

using namespace test;

bool is_in_three_products(const Option& option) {
  const std::vector<Constant>& constants = option.choice.proposal.first().kernel.constants;
  return std::any_of(constants.begin(), constants.end(), [](const Constant& constant) {
    const bool* const split = std::get_if<bool>(&constant.value);
    return constant.name == "SPLIT" && split != nullptr && *split;
  });
}

}  // namespace

// Numbers whose products are within f32's range, but overflow when they are scaled.
BOOST_AUTO_TEST_CASE(large_numbers) {
  constexpr Arithmetic f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
  kiln_test::ShareOfCases share = share_of_cases(1);
  std::set<std::string> engines;
  for (const char* line : {"mb2ic16ih9iw10oc24kh3ph1", "mb2ic3ih13iw12oc24kh5ph0",
                           "mb2ic24ih9iw10oc3kh3ph0", "g2mb2ic32ih9iw10oc48kh3ph1sh2sw2"})
    for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
      for (const ConvolutionPass pass :
           {ConvolutionPass::fprop, ConvolutionPass::dgrad, ConvolutionPass::wgrad}) {
        const ConvolutionProblem problem = problem_in(line, f32, layout, pass);
        OperationCase item = integers_of(problem, 5);
        for (int i = 0; i < 2; ++i)
          for (double& value : item.tensors[i].values) value = (value == 0 ? 1 : value) * 0x1p50;
        item.tensors.back().fill_integers(11, 2);
        item.scalars = {.alpha = 2, .beta = -1};
        const HostTensor want = item.expected();
        for (const Option& option : one_of_each(problem, true, is_in_three_products)) {
          engines.insert(option.name.engine);
          if (!share.takes(option.name.engine, line, layout, pass)) continue;
          const std::string fault = difference(run_proposal(item, option.choice.proposal), want);
          BOOST_TEST(fault.empty(), text_of(problem)
                                        << ", " << describe(option.name) << ": " << fault);
        }
      }
  BOOST_TEST(engines.size() >= (has_warpgroups() ? 13 : 8), engines.size() << " engines");
}

BOOST_AUTO_TEST_SUITE_END()
