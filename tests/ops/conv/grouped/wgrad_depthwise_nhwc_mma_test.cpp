// Filter gradients of depthwise convolutions and of small groups by warps that walk down rows:
// every split of the sums, strides, dilation, flipped filters, tails of channels, rows and columns;
// infinities and NaN.
#include "engines/conv/grouped/wgrad_depthwise_nhwc_mma.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "ops/conv/channels_last_case.hpp"

namespace {

using namespace test;

const RecipeEngine engine(::kiln::wgrad_depthwise_nhwc_mma);

ConvolutionProblem gradient(const char* line, DataType type,
                            kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return nhwc(line, type, ConvolutionPass::wgrad, mode);
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

}  // namespace

BOOST_AUTO_TEST_SUITE(wgrad_depthwise_nhwc_mma, *boost::unit_test::precondition(has_copy_engine))

BOOST_AUTO_TEST_CASE(shapes_and_splits) {
  std::size_t turn = 0;
  for (const char* line :
       {"g48mb2ic48ih9iw11oc48kh3ph1", "g8mb3ic8ih7iw5oc8kh5ph2", "g272mb1ic272ih5iw6oc272kh3ph1",
        "g16mb2ic16ih13iw8oc16kh3ph1sh2sw2", "g16mb2ic16ih12iw39oc16kh5ph2sh2sw3",
        "g24mb1ic24ih9iw9oc24kh2sh4sw4", "g40mb2ic40ih15oc40kh7ph3",
        "g8mb1ic8ih14iw43oc8kh3ph2dh1dw1", "g8mb40ic8ih1iw1oc8kh1",
        "g32mb1ic32ih1iw90oc32kh1kw9pw4", "g96mb3ic96ih30iw57oc96kh3ph1",
        "g20mb2ic40ih9iw11oc40kh3ph1", "g4mb2ic16ih9iw35oc16kh5ph2", "g3mb2ic24ih17iw18oc24kh3",
        "g64mb2ic64ih8iw20oc64kh7kw9ph3pw4"})
    for (DataType type : half_types) {
      const OperationCase item = integers_in_turn(gradient(line, type, mode_in_turn(turn)), turn);
      check_split(engine, item, split_in_turn(turn++));
    }
}

BOOST_AUTO_TEST_CASE(random_numbers_of_both_types) {
  for (DataType type : half_types)
    check_uniform(gradient("g40mb2ic40ih19iw37oc40kh5ph2", type), engine.name(), 3);
}

// NaN and infinities in x beyond the last row and column that dy reads (there is no padding), in
// dy, and in both.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const char* line : {"g8mb2ic8ih9iw35oc8kh3", "g4mb2ic16ih9iw21oc16kh5ph2sh2"})
    for (const bool in_x : {false, true})
      for (const bool in_dy : {false, true}) {
        OperationCase item = integers_of(gradient(line, KILN_DATA_HALF), 5);
        replace_zeros(item);
        const auto size = [&](const char* tensor) {
          return static_cast<std::int64_t>(item[tensor].values.size());
        };
        if (in_x) {
          item["x"].at(0) = infinity;
          item["x"].at(size("x") / 2 - 1) = std::nan("");
          item["x"].at(size("x") - 1) = -infinity;
        }
        if (in_dy) {
          item["dy"].at(size("dy") / 3) = -infinity;
          item["dy"].at(size("dy") - 1) = std::nan("");
        }
        check_integers(item, engine.name());
      }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason(gradient("g32mb4ic32ih9oc32kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(reason(gradient("g32mb4ic32ih9oc32kh3ph1", KILN_DATA_FLOAT)) ==
             "the data type is f32; this engine takes f16 and bf16");
  BOOST_TEST(reason(gradient("g16mb4ic32ih9oc64kh3ph1", KILN_DATA_HALF)) ==
             "groups of 2 input and 4 output channels; this engine takes 1, 2, 4 or 8 of both");
  BOOST_TEST(reason(gradient("g32mb4ic32ih39oc32kh31ph15", KILN_DATA_HALF)) ==
             "31 x 31 taps, whose sums do not fit in the registers of four warps");
}

BOOST_AUTO_TEST_SUITE_END()
