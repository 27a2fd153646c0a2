// The engine for channels-last layers that read or make an image: every number of channels of a
// warp and of a block, rows of any alignment, tails of pixels, channels and the reduction, strides,
// dilation, flipped filters, volumes, the epilogue, and infinities and NaN.
#include <boost/test/unit_test.hpp>

#include "engines/conv/few_input_channels/few_input_channels_nhwc_mma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/channels_last_case.hpp"

BOOST_AUTO_TEST_SUITE(few_input_channels_nhwc)

namespace {

using namespace test;

const RecipeEngine forward(few_input_channels_nhwc_mma);

}  // namespace

// Copies of 16, 8, 4 and 2 bytes; channels of one warp, two warps and several blocks; one step and
// many, with and without padding in the last one.
BOOST_AUTO_TEST_CASE(shapes) {
  std::size_t turn = 0;
  for (const char* line :
       {"mb2ic3ih16iw24oc64kh7ph3sh2", "mb2ic3ih9iw13oc40kh3ph1", "mb1ic1ih11iw70oc16kh5ph2",
        "mb3ic3ih10iw14oc24kh3ph1sh2sw2", "mb2ic4ih18iw20oc96kh4sh4ph0",
        "mb1ic8ih7iw9oc128kh3ph2dh1dw1", "mb2ic2ih12iw130oc8kh1kw9ph0pw4sw3",
        "mb1ic3id5ih8iw9oc32kd3kh5kw5pd1ph2pw2sd1sh2sw2", "mb2ic3ih9iw21oc136kh3ph1",
        "mb1ic3ih20iw33oc520kh2", "mb5ic3ih1iw33oc16kh1kw3pw1", "mb2ic3ih19iw18oc72kh11ph3",
        "mb2ic3id3ih9iw13oc40kd1kh3kw5pd0ph1pw2", "mb3ic1ih5iw3oc16kh3kw7ph1pw5",
        "mb3ic5ih9iw75oc24kh3ph0sh2sw2", "mb1ic7ih6iw131oc8kh2kw5ph1pw4dw2"}) {
    const ConvolutionProblem problem = nhwc(line, half_types[turn / 2 % std::size(half_types)],
                                            ConvolutionPass::fprop, mode_in_turn(turn));
    BOOST_TEST(refusal_of(forward, problem) == "");
    check_integers(integers_in_turn(problem, turn / 2), forward.name());
    ++turn;
  }
}

// Data gradients of layers with few output channels.
BOOST_AUTO_TEST_CASE(gradients) {
  std::size_t turn = 0;
  for (const char* line :
       {"mb2ic64ih9iw21oc3kh3ph1", "mb1ic136ih7iw18oc2kh5ph1", "mb2ic24ih10iw13oc1kh4ph2",
        "mb1ic16ih6iw9oc8kh3ph2dh1dw1", "mb2ic40id4ih6iw7oc4kd2kh3kw3pd0ph1pw1"})
    for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION}) {
      const ConvolutionProblem problem =
          nhwc(line, half_types[turn++ % std::size(half_types)], ConvolutionPass::dgrad, mode);
      BOOST_TEST(refusal_of(forward, problem) == "");
      check_integers(integers_of(problem), forward.name());
    }
}

BOOST_AUTO_TEST_CASE(random_numbers_and_an_epilogue) {
  for (DataType type : half_types)
    for (const char* line : {"mb2ic3ih32iw40oc64kh7ph3sh2", "mb2ic3ih20iw33oc104kh3ph1"})
      check_uniform(fused_in(line, {type, KILN_MATH_DEFAULT}, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC),
                    forward.name(), 3, {.alpha = 0.5, .beta = 0.75});
}

// NaN and infinities reach the outputs that read them, and no others.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  for (const char* line :
       {"mb2ic3ih9iw13oc24kh3ph1", "mb2ic3ih9iw14oc40kh3ph1sh2sw2", "mb1ic1ih9iw19oc16kh2sh3sw3"})
    for (const bool of_w : {false, true})
      for (const bool infinite : {false, true})
        check_one_value(nhwc(line, KILN_DATA_HALF), forward.name(), of_w ? "w" : "x", infinite);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(refusal_of(forward, nhwc("mb4ic3ih9oc32kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(refusal_of(forward, nhwc("mb4ic3ih9oc32kh3ph1", KILN_DATA_FLOAT)) ==
             "the data type is f32; this engine takes f16 and bf16");
  BOOST_TEST(refusal_of(forward, nhwc("g2mb4ic6ih9oc32kh3ph1", KILN_DATA_HALF)) ==
             "2 groups; expected 1");
  BOOST_TEST(refusal_of(forward, nhwc("mb4ic24ih9oc32kh3ph1", KILN_DATA_HALF)) ==
             "24 input channels; expected at most 8");
  BOOST_TEST(refusal_of(forward, nhwc("mb4ic3ih9oc20kh3ph1", KILN_DATA_HALF)) ==
             "20 output channels; expected a multiple of 8");
  BOOST_TEST(
      refusal_of(forward, nhwc("mb4ic8ih9oc3kh3ph1sh2", KILN_DATA_HALF, ConvolutionPass::dgrad)) ==
      "a data gradient with a stride; this engine takes stride 1");
  BOOST_TEST(
      refusal_of(forward, problem_in("mb4ic3ih9oc32kh3ph1", {KILN_DATA_HALF, KILN_MATH_DEFAULT},
                                     KILN_TENSOR_NCHW)) ==
      "the channel stride of x is 81; expected 1");
  BOOST_TEST(refusal_of(forward, nhwc("mb4ic3ih90oc32kh21kw21", KILN_DATA_HALF)) ==
             "filters of 1323 elements; expected at most 1024");
}

BOOST_AUTO_TEST_SUITE_END()
