// The depthwise engine with halos: every tile and type, tails of channels and pixels, strides,
// dilation, flipped filters, the epilogue, infinities.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "engines/conv/direct/depthwise_halo_nhwc_fma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/channels_last_case.hpp"

namespace {

using namespace test;

const RecipeEngine engine(depthwise_halo_nhwc_fma);
constexpr DataType types[] = {KILN_DATA_HALF, KILN_DATA_FLOAT, KILN_DATA_BFLOAT16};

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

}  // namespace

BOOST_AUTO_TEST_SUITE(depthwise_halo, *boost::unit_test::precondition(has_copy_engine))

// All tiles of a problem, even if mostly idle: more images than a block takes at once, a partial
// tile of channels, pixels that end within a thread, rows that end within a strip, layers of one
// row.
BOOST_AUTO_TEST_CASE(tiles) {
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;  // shapes
  std::size_t turn = 0;
  for (const char* line : {"g72mb3ic72ih16iw17oc72kh3ph1", "g48mb2ic48ih15iw30oc48kh5ph2",
                           "g40mb2ic40ih9iw70oc40kh3ph1sh2sw2", "g8mb5ic8ih20iw15oc8kh7ph3",
                           "g72mb3ic72iw77oc72kw31pw15"}) {
    OperationCase item = integers_of(nhwc(line, types[turn++ % std::size(types)]));
    item.scalars = {.alpha = 2, .beta = -1};
    item.fill_integers(7, 2);
    const HostTensor want = item.expected();
    const auto& problem = std::get<ConvolutionProblem>(item.problem);
    BOOST_TEST(reason(problem) == "");
    for (const DepthwiseHaloTile& tile : engine.tiles(problem, device()->description())) {
      seen.insert({tile.shape.p, tile.shape.q, tile.shape.lanes});
      const Proposal proposal = engine.propose(tile, problem, device()->description());
      const std::string fault = difference(run_proposal(item, proposal), want);
      BOOST_TEST(fault.empty(), line << ", " << proposal.first().kernel.tile << ": " << fault);
    }
  }
  BOOST_TEST(seen.size() == 15U);
}

// Filters of one tap, row and column, dilation, rows without padding, many images of one pixel.
BOOST_AUTO_TEST_CASE(shapes) {
  std::size_t turn = 0;
  for (const char* line :
       {"g48mb2ic48ih9iw11oc48kh3ph1", "g8mb3ic8ih7iw5oc8kh5ph2", "g272mb1ic272ih5iw6oc272kh3ph1",
        "g8mb2ic8ih15oc8kh7ph3", "g8mb1ic8ih14iw13oc8kh3ph2dh1dw1", "g8mb40ic8ih1iw1oc8kh1",
        "g32mb1ic32ih1iw30oc32kh1kw9pw4", "g16mb2ic16ih12iw300oc16kh3kw2ph4pw1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const OperationCase item = integers_in_turn(
          nhwc(line, types[(turn + turn / 6) % std::size(types)], pass, mode_in_turn(turn)), turn);
      check_integers(item, engine.name());
      ++turn;
    }
  for (const char* line : {"g16mb2ic16ih13iw8oc16kh3ph1sh2sw2", "g16mb1ic16ih12iw9oc16kh5ph2sh2sw3",
                           "g24mb1ic24ih9iw9oc24kh2sh4sw4"})
    check_integers(integers_of(nhwc(line, types[turn++ % std::size(types)])), engine.name());
}

BOOST_AUTO_TEST_CASE(fused_operations) {
  check_integers(
      integers_of(fused_in("g24mb2ic24ih9iw10oc24kh5ph2", {KILN_DATA_HALF, KILN_MATH_DEFAULT},
                           KILN_TENSOR_NHWC, KILN_TENSOR_NHWC)),
      engine.name());
}

BOOST_AUTO_TEST_CASE(random_numbers_of_every_type) {
  for (DataType type : types)
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad})
      check_uniform(nhwc("g40mb2ic40ih9iw17oc40kh5ph2", type, pass), engine.name(), 3);
}

// A NaN or infinity stays in its channel, and in the pixels whose taps read it.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  OperationCase item = integers_of(nhwc("g16mb2ic16ih6iw9oc16kh3ph1", KILN_DATA_HALF), 5);
  item["x"].at(20) = std::nan("");
  item["x"].at(800) = std::numeric_limits<double>::infinity();
  item["w"].at(7 * 9 + 4) = -std::numeric_limits<double>::infinity();
  replace_zeros(item);
  check_integers(item, engine.name());
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason(nhwc("g32mb4ic32ih9oc32kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(reason(nhwc("g16mb4ic32ih9oc32kh3ph1", KILN_DATA_HALF)) ==
             "2 input and 2 output channels a group; this engine takes one of each");
  BOOST_TEST(reason(nhwc("g32mb4ic32ih9oc32kh3ph1", KILN_DATA_DOUBLE)) ==
             "the data type is f64; this engine takes f32, f16 and bf16");
  BOOST_TEST(reason(nhwc("g32mb4ic32ih9oc32kh3ph1sh2", KILN_DATA_HALF, ConvolutionPass::dgrad)) ==
             "a data gradient with a stride; this engine takes stride 1");
  BOOST_TEST(reason(nhwc("g32mb4ic32ih64oc32kh31ph15", KILN_DATA_HALF)) ==
             "the halo or the sums of no tile fit into a multiprocessor");
}

BOOST_AUTO_TEST_SUITE_END()
