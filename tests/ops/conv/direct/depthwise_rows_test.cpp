// The depthwise kernels for channels that come in no vectors of 16 bytes, and for volumes: a thread
// has two channels or one. Every tile, type and tail; strides in both directions, dilation, uneven
// padding, channel multipliers, phases without taps, tensors at any alignment; and the filter
// gradients of such widths.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "engines/conv/direct/depthwise_nhwc_fma.hpp"
#include "engines/conv/direct/depthwise_rows_nhwc_fma.hpp"
#include "engines/conv/direct/wgrad_depthwise_nhwc_fma.hpp"
#include "engines/conv/direct/wgrad_depthwise_rows_nhwc_fma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/channels_last_case.hpp"

BOOST_AUTO_TEST_SUITE(depthwise_rows)

namespace {

using namespace test;

const RecipeEngine engine(depthwise_rows_nhwc_fma);
const RecipeEngine groups(depthwise_nhwc_fma);
const RecipeEngine of_filters(::kiln::wgrad_depthwise_rows_nhwc_fma);
const RecipeEngine of_group_filters(::kiln::wgrad_depthwise_nhwc_fma);

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

constexpr ConvolutionPass gathers[] = {ConvolutionPass::fprop, ConvolutionPass::dgrad};

}  // namespace

// Numbers of channels of every remainder, in one block and in several, whose last one is not full.
BOOST_AUTO_TEST_CASE(widths) {
  std::size_t turn = 0;
  for (const int channels : {2, 3, 5, 7, 9, 14, 25, 39, 42, 53, 90, 134, 195})
    for (const ConvolutionPass pass : gathers) {
      const std::string line =
          cat("g", channels, "mb2ic", channels, "ih6iw9oc", channels, "kh3ph1");
      const DataType type = all_types[(turn + turn / 4) % std::size(all_types)];
      const ConvolutionProblem problem = nhwc(line.c_str(), type, pass, mode_in_turn(turn));
      // Of f64, two channels are a vector of 16 bytes.
      const bool whole = type == KILN_DATA_DOUBLE && channels % 2 == 0;
      check_integers(integers_in_turn(problem, turn), whole ? groups.name() : engine.name());
      ++turn;
    }
}

BOOST_AUTO_TEST_CASE(shapes) {
  std::size_t turn = 0;
  for (const char* line :
       {"g25mb3ic25ih7iw5oc25kh5ph2", "g9mb1ic9ih12iw9oc9kh5ph2sh2sw3",
        "g11mb2ic11ih13iw8oc11kh3ph1sh2sw2", "g3mb1ic3ih9iw9oc3kh2sh4sw4", "g7mb2ic7ih15oc7kh7ph3",
        "g5mb1ic5ih14iw13oc5kh3ph2dh1dw1", "g13mb40ic13ih1iw1oc13kh1", "g15mb1ic15iw30oc15kw9pw4",
        "g5mb2ic5ih9iw10oc5oh10ow8kh3kw4ph2pw0", "g3mb1ic3iw60oc3kw31pw15",
        "g7mb2ic7ih9iw7oc21kh3ph1", "g10mb1ic10ih5iw18oc20kh3ph1sh2", "g3mb2ic3ih7iw6oc12kh3ph1"})
    for (const ConvolutionPass pass : gathers) {
      const DataType type = all_types[(turn + turn / 4) % std::size(all_types)];
      const ConvolutionProblem problem = nhwc(line, type, pass, mode_in_turn(turn));
      if (!reason(problem).empty()) continue;  // the data gradient of a multiplier; f64 in pairs
      check_integers(integers_in_turn(problem, turn), engine.name());
      ++turn;
    }
}

// Three dimensions, of any number of channels: planes of the filter that lie in the padding,
// strides and dilation along the depth, and filters of the depth alone.
BOOST_AUTO_TEST_CASE(volumes) {
  std::size_t turn = 0;
  for (const char* line : {"g24mb2ic24id5ih6iw9oc24kd3kh3kw3pd1ph1pw1",
                           "g9mb1ic9id6ih7iw8oc9kd3kh3kw3pd1ph1pw1sd2sh2sw2",
                           "g5mb1ic5id7ih4iw9oc5kd3kh1kw1pd2ph0pw0dd1",
                           "g16mb1ic16id4ih5iw6oc16kd2kh3kw3pd1ph1pw1sd1sh2sw2",
                           "g7mb1ic7id1ih5iw6oc7kd3kh5kw5pd1ph2pw2"})
    for (const ConvolutionPass pass : gathers) {
      const DataType type = all_types[(turn + turn / 4) % std::size(all_types)];
      const OperationCase item = integers_in_turn(nhwc(line, type, pass, mode_in_turn(turn)), turn);
      check_integers(item, engine.name());
      ++turn;
    }
}

// All tiles give the same results.
BOOST_AUTO_TEST_CASE(all_tiles_are_right) {
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const char* line : {"g9mb1ic9ih15iw13oc9kh3ph1", "g10mb1ic10ih8iw16oc10kh5ph2",
                           "g6mb1ic6id3ih14iw9oc6kd3kh3kw3pd1ph1pw1"}) {
    OperationCase item = integers_of(nhwc(line, KILN_DATA_HALF));
    item.scalars = {.alpha = 2, .beta = -1};
    item.fill_integers(7, 2);
    const HostTensor want = item.expected();
    const auto& problem = std::get<ConvolutionProblem>(item.problem);
    for (const DepthwiseRowsTile& tile : engine.tiles(problem, device()->description())) {
      seen.insert({tile.shape.p, tile.shape.q});
      const Proposal proposal = engine.propose(tile, problem, device()->description());
      const std::string fault = difference(run_proposal(item, proposal), want);
      BOOST_TEST(fault.empty(), line << ", " << proposal.first().kernel.tile << ": " << fault);
    }
  }
  BOOST_TEST(seen.size() == 7U);
}

// Tensors of any alignment: vectors as wide as it and the strides allow.
BOOST_AUTO_TEST_CASE(alignments) {
  for (const std::size_t alignment : {2, 4}) {
    ConvolutionProblem problem = nhwc("g32mb2ic32ih6iw9oc32kh3ph1", KILN_DATA_HALF);
    problem.alignment = alignment;
    BOOST_TEST(reason(problem) == "");
    const DepthwiseRowsTile tile = engine.tiles(problem, device()->description()).front();
    BOOST_TEST(tile.vector * 2 == static_cast<std::int64_t>(alignment));
    check_integers(integers_of(problem), engine.name());
  }
}

BOOST_AUTO_TEST_CASE(random_numbers_of_every_type) {
  for (DataType type : all_types) {
    check_uniform(nhwc("g41mb2ic41ih9iw7oc41kh3ph1", type), engine.name(), 3);
    check_uniform(nhwc("g41mb2ic41ih9iw7oc41kh3ph1", type, ConvolutionPass::wgrad),
                  of_filters.name(), 4);
  }
}

// A NaN or infinity stays in its channel, and in the pixels whose taps read it.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  for (const char* line : {"g9mb2ic9ih6iw9oc9kh3ph1", "g10mb2ic10ih6iw9oc10kh3ph1"}) {
    OperationCase item = integers_of(nhwc(line, KILN_DATA_HALF), 5);
    item["x"].at(20) = std::nan("");
    item["x"].at(800) = std::numeric_limits<double>::infinity();
    replace_zeros(item);
    check_integers(item, engine.name());
  }
}

// Groups of several channels, and filters that are too long for registers.
BOOST_AUTO_TEST_CASE(groups_and_long_filters) {
  std::size_t turn = 0;
  for (const char* line :
       {"g3mb2ic15ih7iw9oc9kh3ph1", "g5mb1ic10ih9iw11oc10kh3ph1sh2", "g7mb1ic21ih6iw8oc14kh2",
        "g9mb1ic9ih40iw33oc9kh25ph12", "g3mb1ic6ih7iw9oc18kh3ph1"})
    for (const ConvolutionPass pass : gathers) {
      const DataType type = all_types[(turn + turn / 4) % std::size(all_types)];
      const OperationCase item = integers_in_turn(nhwc(line, type, pass, mode_in_turn(turn)), turn);
      check_integers(item, groups.name());
      ++turn;
    }
}

// Filter gradients by tiles in turn: single blocks, clusters, and groups of blocks; rows of the
// filter divided among blocks; volumes.
BOOST_AUTO_TEST_CASE(filter_gradients) {
  std::size_t turn = 0;
  for (const char* line :
       {"g25mb2ic25ih9iw11oc25kh3ph1", "g7mb3ic7ih7iw5oc7kh5ph2", "g90mb1ic90ih5iw6oc90kh3ph1",
        "g15mb2ic15ih13iw8oc15kh3ph1sh2sw2", "g3mb1ic3ih9iw9oc3kh2sh4sw4",
        "g42mb2ic42ih15oc42kh7ph3", "g5mb1ic5ih14iw13oc5kh3ph2dh1dw1", "g13mb40ic13ih1iw1oc13kh1",
        "g134mb1ic134ih4iw5oc134kh3ph1", "g7mb2ic7ih9iw7oc21kh3ph1", "g3mb1ic3ih20iw23oc3kh13ph6",
        "g24mb2ic24id5ih6iw9oc24kd3kh3kw3pd1ph1pw1",
        "g9mb1ic9id6ih7iw8oc9kd3kh3kw3pd1ph1pw1sd2sh2sw2",
        "g5mb1ic5id7ih4iw9oc5kd3kh1kw1pd2ph0pw0dd1"}) {
    const DataType type = all_types[(turn + turn / 4) % std::size(all_types)];
    const OperationCase item =
        integers_in_turn(nhwc(line, type, ConvolutionPass::wgrad, mode_in_turn(turn)), turn);
    const auto& problem = std::get<ConvolutionProblem>(item.problem);
    if (!refusal_of(of_filters, problem).empty()) continue;  // f64 in pairs
    const DeviceDescription& on = device()->description();
    const std::vector<WgradDepthwiseRowsTile> tiles = of_filters.tiles(problem, on);
    for (std::size_t i = 0; i < tiles.size(); i += 2) {
      const WgradDepthwiseRowsTile& tile = tiles[(turn + i) % tiles.size()];
      const Split split = split_in_turn(turn++);
      check_split(item, of_filters.propose(tile, problem, on, {split.cluster, split.groups}),
                  split);
    }
  }
}

// Rows of dy that a unit lacks are not multiplied, for what they would meet may be infinite.
BOOST_AUTO_TEST_CASE(filter_gradients_of_infinities) {
  for (const char* line : {"g9mb2ic9ih7iw9oc9kh3ph1", "g9mb2ic9ih9iw9oc9kh3ph1sh2"})
    for (const std::int64_t at : {58, 931}) {
      OperationCase item = integers_of(nhwc(line, KILN_DATA_HALF, ConvolutionPass::wgrad), 5);
      replace_zeros(item);
      item["x"].at(at) = std::numeric_limits<double>::infinity();
      check_integers(item, of_filters.name());
    }
}

// Of groups of several channels.
BOOST_AUTO_TEST_CASE(filter_gradients_of_groups) {
  std::size_t turn = 0;
  for (const char* line :
       {"g10mb2ic30ih9iw11oc20kh3ph1", "g3mb1ic6ih7iw9oc18kh3ph1", "g9mb1ic9ih40iw33oc9kh25ph12"})
    for (DataType type : {KILN_DATA_HALF, KILN_DATA_FLOAT}) {
      const OperationCase item =
          integers_in_turn(nhwc(line, type, ConvolutionPass::wgrad, mode_in_turn(turn)), turn);
      check_split(of_group_filters, item, split_in_turn(turn++));
    }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason(nhwc("g9mb4ic9ih9oc9kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(reason(nhwc("g16mb4ic16ih9oc16kh3ph1", KILN_DATA_HALF)) ==
             "channels in multiples of 16 bytes, in two dimensions; this engine takes others");
  BOOST_TEST(reason(nhwc("g3mb4ic6ih9oc9kh3ph1", KILN_DATA_HALF)) ==
             "2 input channels a group; this engine takes one");
  BOOST_TEST(reason(nhwc("g9mb4ic9ih99oc9kh70ph3", KILN_DATA_HALF)) ==
             "4900 taps in a plane of the filter for 1 channels of a thread; expected at most 4096 "
             "products, in registers");
  BOOST_TEST(reason(problem_in("g9mb4ic9ih9oc9kh3ph1", {KILN_DATA_HALF, KILN_MATH_DEFAULT},
                               KILN_TENSOR_NCHW)) ==
             "the channels of x are not contiguous (stride 1), as channels-last layout has them");
}

BOOST_AUTO_TEST_SUITE_END()
