// The engines of depthwise convolutions of channels-last tensors, and of few channels a group:
// every type, tails, strides in both directions, dilation, flipped filters, the epilogue.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/direct/depthwise_nhwc_fma.hpp"
#include "engines/conv/direct/wgrad_depthwise_nhwc_fma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/channels_last_case.hpp"

BOOST_AUTO_TEST_SUITE(depthwise_nhwc)

namespace {

using namespace test;

const RecipeEngine engine(depthwise_nhwc_fma);
const RecipeEngine of_filters(::kiln::wgrad_depthwise_nhwc_fma);

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

}  // namespace

// Channels and pixels that end within a tile; filters of one tap, row and column; phases of a data
// gradient, some without taps.
BOOST_AUTO_TEST_CASE(shapes) {
  std::size_t turn = 0;
  for (const char* line :
       {"g48mb2ic48ih9iw11oc48kh3ph1", "g8mb3ic8ih7iw5oc8kh5ph2", "g272mb1ic272ih5iw6oc272kh3ph1",
        "g16mb2ic16ih13iw8oc16kh3ph1sh2sw2", "g16mb1ic16ih12iw9oc16kh5ph2sh2sw3",
        "g24mb1ic24ih9iw9oc24kh2sh4sw4", "g8mb2ic8ih15oc8kh7ph3", "g8mb1ic8ih14iw13oc8kh3ph2dh1dw1",
        "g8mb40ic8ih1iw1oc8kh1", "g32mb1ic32ih1iw30oc32kh1kw9pw4"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const DataType type = all_types[turn % std::size(all_types)];
      const OperationCase item = integers_in_turn(nhwc(line, type, pass, mode_in_turn(turn)), turn);
      check_integers(item, engine.name());
      ++turn;
    }
}

// Groups of several channels, channel multipliers, and their data gradients: a thread's channels
// belong to several groups, or to a part of one.
BOOST_AUTO_TEST_CASE(groups_and_multipliers) {
  std::size_t turn = 0;
  for (const char* line :
       {"g12mb2ic48ih9iw11oc48kh3ph1", "g3mb1ic48ih6iw7oc48kh3ph1", "g8mb2ic8ih9iw7oc32kh3ph1",
        "g20mb1ic40ih13iw8oc40kh3ph1sh2sw2", "g8mb1ic8ih5iw18oc64kh3ph1",
        "g16mb1ic16ih8iw9oc32kh5ph2sh2", "g4mb2ic32ih7iw9oc32kh2", "g8mb1ic32ih6iw9oc16kh1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const DataType type = all_types[(turn + turn / 4) % std::size(all_types)];
      const OperationCase item = integers_in_turn(nhwc(line, type, pass, mode_in_turn(turn)), turn);
      check_integers(item, engine.name());
      ++turn;
    }
}

// The same for filter gradients, by single blocks, clusters, and groups of blocks.
BOOST_AUTO_TEST_CASE(filter_gradients) {
  std::size_t turn = 0;
  for (const char* line :
       {"g48mb2ic48ih9iw11oc48kh3ph1", "g8mb3ic8ih7iw5oc8kh5ph2", "g272mb1ic272ih5iw6oc272kh3ph1",
        "g16mb2ic16ih13iw8oc16kh3ph1sh2sw2", "g24mb1ic24ih9iw9oc24kh2sh4sw4",
        "g40mb2ic40ih15oc40kh7ph3", "g8mb1ic8ih14iw13oc8kh3ph2dh1dw1", "g8mb40ic8ih1iw1oc8kh1",
        "g32mb1ic32ih1iw30oc32kh1kw9pw4", "g20mb2ic40ih9iw11oc40kh3ph1", "g8mb2ic8ih9iw7oc32kh3ph1",
        "g8mb1ic24ih8iw9oc8kh3ph1sh2", "g4mb2ic16ih7iw9oc32kh2"})
    for (DataType type : all_types) {
      const OperationCase item =
          integers_in_turn(nhwc(line, type, ConvolutionPass::wgrad, mode_in_turn(turn)), turn);
      check_split(of_filters, item, split_in_turn(turn++));
    }
}

// Rows of dy that a unit lacks are not multiplied, for the rows of x that they would meet may be
// infinite.
BOOST_AUTO_TEST_CASE(filter_gradients_of_infinities) {
  for (const char* line : {"g16mb2ic16ih7iw9oc16kh3ph1", "g16mb2ic16ih9iw9oc16kh3ph1sh2"})
    for (const std::int64_t at : {58, 931}) {
      OperationCase item = integers_of(nhwc(line, KILN_DATA_FLOAT, ConvolutionPass::wgrad), 5);
      replace_zeros(item);
      item["x"].at(at) = std::numeric_limits<double>::infinity();
      check_integers(item, of_filters.name());
    }
}

// Long depthwise filters, of which a thread has fewer channels: four, two and one.
BOOST_AUTO_TEST_CASE(filter_gradients_of_long_filters) {
  std::size_t turn = 0;
  for (const char* line : {"g72mb2ic72iw77oc72kw21pw10", "g24mb2ic24ih5iw30oc24kh3kw19ph1pw9",
                           "g16mb1ic16iw90oc16kw17pw16dw1"})
    for (DataType type : all_types) {
      const OperationCase item =
          integers_in_turn(nhwc(line, type, ConvolutionPass::wgrad, mode_in_turn(turn)), turn);
      check_split(of_filters, item, split_in_turn(turn++));
    }
  for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF}) {
    const ConvolutionProblem problem =
        nhwc("g40mb3ic40iw100oc40kw31pw15", type, ConvolutionPass::wgrad);
    check_split(of_filters, integers_of(problem), split_in_turn(turn++));
    check_uniform(problem, of_filters.name(), 4);
  }
}

BOOST_AUTO_TEST_CASE(random_numbers_of_every_type) {
  for (DataType type : all_types) {
    check_uniform(nhwc("g40mb2ic40ih9iw7oc40kh3ph1", type), engine.name(), 3);
    check_uniform(nhwc("g40mb2ic40ih9iw7oc40kh3ph1", type, ConvolutionPass::wgrad),
                  of_filters.name(), 4);
  }
}

// A NaN or infinity stays in its channel, and in the pixels whose taps read it.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  OperationCase item = integers_of(nhwc("g16mb2ic16ih6iw9oc16kh3ph1", KILN_DATA_HALF), 5);
  item["x"].at(20) = std::nan("");
  item["x"].at(800) = std::numeric_limits<double>::infinity();
  replace_zeros(item);
  check_integers(item, engine.name());

  OperationCase groups = integers_of(nhwc("g4mb2ic16ih6iw9oc16kh3ph1", KILN_DATA_FLOAT), 5);
  groups["x"].at(20) = std::nan("");
  groups["x"].at(800) = std::numeric_limits<double>::infinity();
  groups["w"].at(7) = -std::numeric_limits<double>::infinity();
  replace_zeros(groups);
  check_integers(groups, engine.name());
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason(nhwc("g32mb4ic32ih9oc32kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(reason(nhwc("g2mb4ic256ih9oc256kh3ph1", KILN_DATA_HALF)) ==
             "a row of the filter reaches over 3 places of 128 channels; expected at most 256 "
             "elements");
  BOOST_TEST(reason(problem_in("g32mb4ic32ih9oc32kh3ph1", {KILN_DATA_HALF, KILN_MATH_DEFAULT},
                               KILN_TENSOR_NCHW)) ==
             "the channels of x are not contiguous (stride 1), as channels-last layout has them");
}

BOOST_AUTO_TEST_SUITE_END()
