// The filter gradient of layers that read or make an image: every tile, by single blocks, clusters
// and groups of blocks, rows of any alignment, tails of pixels and channels, strides, dilation,
// flipped filters, volumes, and infinities and NaN.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/conv/wgrad/wgrad_few_channels_mma.hpp"
#include "ops/conv/channels_last_case.hpp"

BOOST_AUTO_TEST_SUITE(wgrad_few_channels)

namespace {

using namespace test;

const RecipeEngine of_filters(::kiln::wgrad_few_channels_mma);

struct GradientCase {
  const char* line;
  kilnTensorFormat_t layout;
};
ConvolutionProblem gradient(const GradientCase& of, const Arithmetic& arithmetic,
                            kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(of.line, arithmetic, of.layout, ConvolutionPass::wgrad, mode);
}
ConvolutionProblem gradient(const char* line, const Arithmetic& arithmetic) {
  return gradient({line, KILN_TENSOR_NHWC}, arithmetic);
}

// Checks every tile of a problem, by single blocks, clusters, and groups of blocks in turn.
void check_gradients(const ConvolutionProblem& problem, std::size_t& turn,
                     kiln_test::ShareOfCases& share) {
  BOOST_TEST(refusal_of(of_filters, problem) == "");
  const OperationCase item = integers_in_turn(problem, turn);
  for (const FewChannelsGradientTile& tile : of_filters.tiles(problem, device()->description())) {
    const Split split = split_in_turn(turn++);
    if (!share.takes(text_of(item.problem), describe(tile))) continue;
    const Sharing sharing{split.cluster, split.groups};
    check_split(item, of_filters.propose(tile, problem, device()->description(), sharing), split);
  }
}

}  // namespace

// Few channels of x, then of dy; copies of 16, 8, 4 and 2 bytes; dy and the filter end within
// tiles.
BOOST_AUTO_TEST_CASE(filter_gradients) {
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0, lines = 0;
  for (const char* line :
       {"mb2ic3ih16iw24oc64kh7ph3sh2", "mb2ic3ih9iw13oc40kh3ph1", "mb1ic1ih11iw70oc16kh5ph2",
        "mb3ic3ih10iw14oc24kh3ph1sh2sw2", "mb2ic4ih18iw20oc96kh4sh4ph0",
        "mb1ic8ih7iw9oc16kh3ph2dh1dw1", "mb2ic2ih12iw130oc8kh1kw9ph0pw4sw3",
        "mb1ic3id5ih8iw9oc32kd3kh5kw5pd1ph2pw2sd1sh2sw2", "mb2ic64ih9iw21oc3kh3ph1",
        "mb1ic136ih7iw18oc2kh3ph1", "mb2ic24ih10iw13oc1kh5ph2sh2sw2",
        "mb1ic16ih6iw9oc8kh3ph2dh1dw1", "mb2ic40id4ih6iw7oc4kd2kh3kw3pd0ph1pw1",
        "mb5ic3ih1iw33oc16kh1kw3pw1"})
    check_gradients(gradient({line, KILN_TENSOR_NHWC},
                             arithmetics[lines++ % std::size(arithmetics)], mode_in_turn(turn)),
                    turn, share);
}

// NCHW: copies of 16, 8 and 4 bytes for rows of dy, also of 2 for rows of x; any number of filters.
BOOST_AUTO_TEST_CASE(filter_gradients_of_planes) {
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0;
  for (const char* line :
       {"mb2ic3ih16iw32oc64kh7ph3sh2", "mb2ic3ih9iw12oc41kh3ph1", "mb1ic1ih11iw70oc16kh5ph2",
        "mb3ic3ih10iw15oc23kh3ph0sh2pw0sw2kw4", "mb2ic4ih18iw24oc96kh4sh4ph0",
        "mb1ic8ih7iw10oc16kh3ph2dh1dw1", "mb2ic2ih12iw100oc8kh1kw9ph0pw4sw3",
        "mb1ic3id5ih8iw12oc32kd3kh5kw5pd1ph2pw2sd1sh2sw2", "mb5ic3ih1iw34oc16kh1kw3pw1",
        "mb2ic64ih9iw24oc3kh3ph1", "mb1ic37ih7iw18oc2kh5ph1", "mb2ic24ih10iw16oc1kh3ph3dh1dw1",
        "mb1ic40id4ih6iw8oc4kd2kh3kw3pd0ph1pw1"})
    for (const Arithmetic& arithmetic : arithmetics)
      check_gradients(gradient({line, KILN_TENSOR_NCHW}, arithmetic, mode_in_turn(turn)), turn,
                      share);
  check_gradients(gradient({"mb2ic3ih9iw13oc5kh3ph1", KILN_TENSOR_NCHW}, arithmetics[0]), turn,
                  share);
}

// dw of f32 from tensors of 16 bits: one step and two, few channels of x and of dy, planes.
BOOST_AUTO_TEST_CASE(filter_gradients_of_f32) {
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0;
  for (const DataType type : half_types)
    for (const GradientCase& of : {GradientCase{"mb2ic3ih16iw24oc64kh7ph3sh2", KILN_TENSOR_NHWC},
                                   {"mb2ic24ih10iw13oc1kh5ph2sh2sw2", KILN_TENSOR_NHWC},
                                   {"mb2ic3ih9iw12oc41kh3ph1", KILN_TENSOR_NCHW},
                                   {"mb2ic64ih9iw24oc3kh3ph1", KILN_TENSOR_NCHW}}) {
      ConvolutionProblem problem = gradient(of, {type, KILN_MATH_DEFAULT});
      problem.w_type = KILN_DATA_FLOAT;
      check_gradients(problem, turn, share);
    }
}

BOOST_AUTO_TEST_CASE(random_filter_gradients) {
  for (const Arithmetic& arithmetic : arithmetics)
    for (const GradientCase& of : {GradientCase{"mb2ic3ih32iw40oc64kh7ph3sh2", KILN_TENSOR_NHWC},
                                   {"mb2ic64ih20iw33oc3kh3ph1", KILN_TENSOR_NHWC},
                                   {"mb2ic3ih32iw40oc64kh7ph3sh2", KILN_TENSOR_NCHW}})
      check_uniform(gradient(of, arithmetic), of_filters.name(), 3);
}

// NaN and infinities reach the sums of their products, and no others.
BOOST_AUTO_TEST_CASE(nan_and_infinity_in_filter_gradients) {
  for (const GradientCase& of : {GradientCase{"mb2ic3ih9iw13oc24kh3ph1", KILN_TENSOR_NHWC},
                                 {"mb2ic3ih9iw14oc24kh3ph1sh2", KILN_TENSOR_NHWC},
                                 {"mb2ic24ih9iw13oc3kh3ph1", KILN_TENSOR_NHWC},
                                 {"mb2ic24ih9iw14oc3kh3ph1sh2", KILN_TENSOR_NHWC},
                                 {"mb2ic3ih9iw12oc21kh3ph1", KILN_TENSOR_NCHW},
                                 {"mb2ic21ih9iw12oc3kh3ph1", KILN_TENSOR_NCHW},
                                 {"mb2ic21ih9iw12oc3kh3ph0", KILN_TENSOR_NCHW},
                                 {"mb2ic3ih9iw15oc21kh3ph1sh2", KILN_TENSOR_NCHW}})
    for (const Arithmetic& arithmetic : arithmetics)
      for (const bool of_dy : {false, true})
        for (const bool infinite : {false, true})
          check_one_value(gradient(of, arithmetic), of_filters.name(), of_dy ? "dy" : "x",
                          infinite);
}

BOOST_AUTO_TEST_CASE(infinity_beside_the_last_pixel) {
  for (const GradientCase& of : {GradientCase{"mb1ic3ih11iw11oc32kh2sh4sw4", KILN_TENSOR_NHWC},
                                 {"mb1ic32ih11iw11oc3kh2sh4sw4", KILN_TENSOR_NHWC},
                                 {"mb1ic3ih11iw15oc32kh2sh4sw4", KILN_TENSOR_NCHW}})
    for (const Arithmetic& arithmetic : arithmetics)
      check_infinity_beside_the_last_pixel(gradient(of, arithmetic), of_filters.name());
}

BOOST_AUTO_TEST_CASE(refusals_of_filter_gradients) {
  BOOST_TEST(refusal_of(of_filters,
                        nhwc("mb4ic3ih9oc32kh3ph1", KILN_DATA_HALF, ConvolutionPass::wgrad)) == "");
  for (const Arithmetic& arithmetic : arithmetics)
    BOOST_TEST(
        refusal_of(of_filters, gradient("mb4ic3ih9oc12kh3ph1", arithmetic)) ==
        (arithmetic.type == KILN_DATA_FLOAT ? "" : "12 channels of dy; expected a multiple of 8"));
  BOOST_TEST(refusal_of(of_filters,
                        gradient("mb4ic3ih9oc32kh3ph1", {KILN_DATA_FLOAT, KILN_MATH_STRICT})) ==
             "the math mode is strict, which keeps off the tensor cores");
  BOOST_TEST(refusal_of(of_filters,
                        gradient("mb4ic3ih9oc32kh3ph1", {KILN_DATA_DOUBLE, KILN_MATH_DEFAULT})) ==
             "the data type is f64; this engine takes f32, f16 and bf16");
  BOOST_TEST(refusal_of(of_filters, nhwc("g2mb4ic6ih9oc32kh3ph1", KILN_DATA_HALF,
                                         ConvolutionPass::wgrad)) == "2 groups; expected 1");
  BOOST_TEST(refusal_of(of_filters,
                        nhwc("mb4ic24ih9oc32kh3ph1", KILN_DATA_HALF, ConvolutionPass::wgrad)) ==
             "24 input and 32 output channels; expected at most 8 of one");
  BOOST_TEST(
      refusal_of(of_filters, nhwc("mb4ic3ih9oc20kh3ph1", KILN_DATA_HALF, ConvolutionPass::wgrad)) ==
      "20 channels of dy; expected a multiple of 8");
  BOOST_TEST(
      refusal_of(of_filters, problem_in("mb4ic3ih9oc32kh3ph1", {KILN_DATA_HALF, KILN_MATH_DEFAULT},
                                        KILN_TENSOR_NCHW, ConvolutionPass::wgrad)) ==
      "rows of dy have 9 elements; expected a multiple of 4 bytes");
  BOOST_TEST(refusal_of(of_filters,
                        gradient({"mb4ic32ih8oc3kh3ph1sh2", KILN_TENSOR_NCHW}, arithmetics[0])) ==
             "the channel stride of dy is 16; expected 1");
  BOOST_TEST(
      refusal_of(of_filters, nhwc("mb4ic3ih90oc32kh60kw60", KILN_DATA_HALF, ConvolutionPass::wgrad))
          .starts_with("a row of the filter has 60 taps, "));
}

BOOST_AUTO_TEST_SUITE_END()
