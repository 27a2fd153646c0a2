// Data gradients with strides, computed phase by phase: filters that no stride divides, flipped
// ones, three dimensions of space, groups, epilogues, and what is refused.
#include "engines/rewrite/stride_phases.hpp"

#include <boost/test/unit_test.hpp>

#include "ops/conv/channels_last_case.hpp"
#include "ops/conv/rewrite/rewrite_case.hpp"

BOOST_AUTO_TEST_SUITE(stride_phases)

namespace {

using namespace test;

const StridePhases phases;

std::string reason(const char* line, DataType type = KILN_DATA_HALF) {
  const ConvolutionProblem problem = nhwc(line, type, ConvolutionPass::dgrad);
  const auto answer = phases.candidates(problem, chooser());
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? "" : refusal->reason;
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_kinds) {
  std::size_t turn = 0;
  for (const char* line :
       {"g3mb2ic72ih12oc72kh3sh2ph1", "g2mb2ic10ih13iw11oc14kh4kw3sh3sw2ph2pw1",
        "g2mb2ic148ih9iw10oc84kh3sh2ph1", "mb2ic3id5ih8iw9oc6kd3kh5kw2sd2sh2sw2pd1ph2pw0",
        "g2mb3ic16iw31oc8kw7sw4pw2", "g6mb2ic6ih9oc6kh5sh2ph2", "g2mb2ic8ih2oc16kh2sh2"}) {
    const DataType type = half_types[turn % 2];
    check_integers(
        integers_in_turn(nhwc(line, type, ConvolutionPass::dgrad, mode_in_turn(turn)), turn),
        phases.name());
    ++turn;
  }
}

BOOST_AUTO_TEST_CASE(epilogues) {
  const auto operands_in = [](kilnTensorFormat_t layout) {
    return describe_convolution(parse_convolution_line("g2mb2ic24ih10oc24kh3sh2ph1"),
                                KILN_DATA_HALF, layout, KILN_CROSS_CORRELATION);
  };
  const ConvolutionOperands o = operands_in(KILN_TENSOR_NHWC);
  for (const kilnTensorFormat_t z_layout : {KILN_TENSOR_NHWC, KILN_TENSOR_NCHW}) {
    const Tensor z = operands_in(z_layout).x;
    Tensor bias = z;
    bias.dims = {1, 24, 1, 1};
    bias.strides = dense_strides(KILN_TENSOR_NCHW, 4, bias.dims);
    OperationCase item(make_convolution_transposed(
        o.spec, o.y, o.w, o.x, bias_activation_epilogue(&z, &bias, {KILN_ACTIVATION_RELU, 0})));
    item.scalars = {.alpha = 0.5, .beta = 0.75};
    item.fill_uniform(3);
    const std::string fault = check(item, phases.name());
    BOOST_TEST(fault.empty(), fault);
  }
}

BOOST_AUTO_TEST_CASE(each_phase_is_a_step) {
  const auto steps = [](const char* line) {
    const ConvolutionProblem problem = nhwc(line, KILN_DATA_HALF, ConvolutionPass::dgrad);
    const auto answer = phases.candidates(problem, chooser());
    return phases.make(problem, chooser(), std::get<0>(answer).back()).steps.size();
  };
  BOOST_TEST(steps("g3mb2ic72ih12oc72kh3sh2ph1") == 4U);
  BOOST_TEST(steps("mb2ic3id5ih8iw9oc6kd3kh5kw2sd2sh2sw2pd1ph2pw0") == 8U);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason("g3mb2ic72ih12oc72kh3sh2ph1") == "");
  BOOST_TEST(reason("g2mb2ic32ih12oc64kh3sh2ph1") ==
             "groups of 16 input and 32 output channels are multiples of 16, which other engines "
             "take");
  BOOST_TEST(reason("mb2ic8ih12oc8kh3sh2ph1", KILN_DATA_FLOAT) ==
             "elements of more than 16 bits; this rewrite takes 16");
  BOOST_TEST(reason("mb2ic8ih12oc8kh3sh2ph1") ==
             "one group and no depth, which other engines take");
  BOOST_TEST(reason("g2mb2ic8ih12oc8kh3sh3ph1") == "9 phases; expected at most 8");
  BOOST_TEST(reason("g2mb2ic8ih12oc8kh1sh2") ==
             "the filter has 1 taps in height for a stride of 2, so that some phases have none");
  BOOST_TEST(reason("g2mb2ic8ih1iw9oc8kh3sh2ph1") ==
             "dx has 1 elements in height for a stride of 2, so that some phases have none");
  BOOST_TEST(reason("g2mb2ic8ih12oc8kh3sh2ph2dh1") == "a dilation of 2 in height; expected 1");
}

BOOST_AUTO_TEST_SUITE_END()
