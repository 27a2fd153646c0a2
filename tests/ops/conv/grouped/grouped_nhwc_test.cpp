// The engines for small groups of channels-last tensors: every size of a group, tails of pixels and
// channels, strides in both passes, dilation, flipped filters, the epilogue, and infinities and
// NaN, which stay in their group.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "engines/conv/grouped/grouped_halo_nhwc_mma.hpp"
#include "engines/conv/grouped/grouped_nhwc_mma.hpp"
#include "engines/conv/grouped/wgrad_grouped_nhwc_mma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/channels_last_case.hpp"

BOOST_AUTO_TEST_SUITE(grouped_nhwc)

namespace {

using namespace test;

const RecipeEngine engine(grouped_nhwc_mma);
const RecipeEngine halos(grouped_halo_nhwc_mma);
const RecipeEngine of_filters(::kiln::wgrad_grouped_nhwc_mma);

}  // namespace

// Blocks of 32 and of 64 channels, and channels that end within a block; pixels of several tiles,
// and fewer than a warp's; one tap, rows and columns of taps, more taps than a step covers and than
// are unrolled; phases of a data gradient, some without taps.
BOOST_AUTO_TEST_CASE(shapes) {
  std::size_t turn = 0;
  for (const char* line :
       {"g4mb2ic8ih9iw11oc8kh3ph1", "g20mb1ic40ih17iw18oc40kh3ph1", "g8mb3ic32ih7iw5oc32kh5ph2",
        "g18mb1ic72ih5iw26oc72kh3ph1", "g5mb2ic40ih13iw8oc40kh3ph1sh2sw2",
        "g12mb1ic96ih12iw9oc96kh5ph2sh2sw3", "g3mb1ic48ih9iw9oc48kh2sh4sw4",
        "g4mb2ic64ih15oc64kh7ph3", "g8mb1ic32ih14iw13oc32kh3ph2dh1dw1", "g2mb40ic32ih1iw1oc32kh1",
        "g32mb1ic64ih1iw150oc64kh1kw9pw4", "g4mb3ic64ih14oc64kh3ph1sh2", "g9mb1ic72ih6oc72kh1sh3",
        "g16mb1ic32ih10iw9oc32kh4kw5ph1pw2sh2sw1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const OperationCase item = integers_in_turn(
          nhwc(line, half_types[turn % std::size(half_types)], pass, mode_in_turn(turn)), turn / 2);
      check_integers(item, engine.name());
      ++turn;
    }
}

// Every tile of the halo kernel that differs from the others for the problem: images of one and of
// several tiles, with rows and columns that end within a block of pixels; units of 16 channels that
// end within a block, and half a unit; an odd number of taps, strides and dilation.
BOOST_AUTO_TEST_CASE(halo_tiles, *boost::unit_test::precondition(has_copy_engine)) {
  std::size_t turn = 0;
  for (const char* line :
       {"g4mb3ic64ih14oc64kh3ph1", "g3mb2ic24ih7iw9oc24kh3ph1", "g5mb2ic80ih19iw35oc80kh3ph1",
        "g9mb1ic72ih9iw70oc72kh3ph1", "g3mb1ic48ih15iw17oc48kh3ph1sh2",
        "g2mb2ic32ih9iw11oc32kh3ph2dh1dw1", "g8mb1ic64ih12iw10oc64kh5ph2", "g2mb9ic32ih1oc32kh1",
        "g4mb1ic32ih5iw40oc32kh1kw9pw4", "g2mb2ic32ih10iw9oc32kh2kw3ph1pw2sh2sw1",
        "g3mb40ic48ih3oc48kh3ph1", "g2mb1ic16ih8iw8oc16kh2", "g16mb2ic64ih14iw13oc64kh3ph1",
        "g6mb2ic24ih7iw9oc24kh3ph1", "g20mb1ic80ih19iw35oc80kh2", "g8mb1ic32ih15iw17oc32kh3ph1sh2",
        "g8mb2ic32ih9iw11oc32kh3ph2dh1dw1", "g8mb1ic32ih5iw40oc32kh4kw5ph1pw2",
        "g8mb2ic32ih6oc32kh1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const OperationCase item = integers_in_turn(
          nhwc(line, half_types[turn % std::size(half_types)], pass, mode_in_turn(turn)), turn / 2);
      ++turn;
      const auto answer = halos.candidates(item.problem, device()->description());
      const auto* candidates = std::get_if<std::vector<Candidate>>(&answer);
      if (candidates == nullptr) {
        BOOST_TEST((pass == ConvolutionPass::dgrad), text_of(item.problem));
        continue;
      }
      const HostTensor want = item.expected();
      std::set<std::string> seen;
      for (const Candidate& candidate : *candidates) {
        const Proposal proposal = halos.make(item.problem, device()->description(), candidate);
        if (!seen.insert(proposal.first().kernel.tile).second) continue;
        const std::string fault = difference(run_proposal(item, proposal), want);
        BOOST_TEST(fault.empty(), text_of(item.problem)
                                      << ", " << proposal.first().kernel.tile << ": " << fault);
      }
    }
}

BOOST_AUTO_TEST_CASE(halo_refusals, *boost::unit_test::precondition(has_copy_engine)) {
  BOOST_TEST(refusal_of(halos, nhwc("g4mb1ic64ih9oc64kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(refusal_of(halos, nhwc("g4mb1ic8ih9oc8kh3ph1", KILN_DATA_HALF)) ==
             "groups of 2 input and 2 output channels; this engine takes 4, 8 or 16 of both");
  BOOST_TEST(refusal_of(halos, nhwc("g4mb1ic64ih9oc64kh7ph3", KILN_DATA_HALF)) ==
             "49 taps; the filter would not fit into registers");
  BOOST_TEST(refusal_of(halos, nhwc("g4mb1ic64ih8oc64kh3ph1sh2", KILN_DATA_HALF,
                                    ConvolutionPass::dgrad)) ==
             "a data gradient with a stride; this engine takes stride 1");
}

// Filter gradients with as many channels of dy as of x, more, fewer, and single ones; by single
// blocks, clusters, and groups of blocks; with the filter's rows in several tiles.
BOOST_AUTO_TEST_CASE(filter_gradients) {
  std::size_t turn = 0;
  for (const char* line :
       {"g20mb2ic40ih9iw11oc40kh3ph1", "g8mb3ic32ih7iw5oc32kh5ph2", "g9mb1ic72ih5iw26oc72kh3ph1",
        "g5mb2ic80ih13iw8oc80kh3ph1sh2sw2", "g40mb1ic40ih12iw9oc40kh5ph2sh2sw3",
        "g6mb1ic48ih9iw9oc48kh2sh4sw4", "g64mb2ic64ih15oc64kh7ph3",
        "g8mb1ic32ih14iw13oc32kh3ph2dh1dw1", "g2mb40ic32ih1iw1oc32kh1",
        "g32mb1ic64ih1iw150oc64kh1kw9pw4", "g24mb2ic24ih9iw7oc48kh3ph1", "g8mb1ic8ih9iw7oc32kh3ph1",
        "g16mb2ic64ih8iw9oc16kh3ph1", "g4mb1ic16ih8iw9oc64kh2", "g4mb1ic64ih8iw9oc16kh3pw1",
        "g32mb1ic32ih20iw35oc32kh21kw31ph10pw15"})
    for (DataType type : half_types) {
      const OperationCase item =
          integers_in_turn(nhwc(line, type, ConvolutionPass::wgrad, mode_in_turn(turn)), turn);
      check_split(of_filters, item, split_in_turn(turn++));
    }
}

BOOST_AUTO_TEST_CASE(random_numbers_and_an_epilogue) {
  for (DataType type : half_types)
    for (const char* line : {"g20mb2ic40ih9iw7oc40kh3ph1", "g10mb2ic40ih9iw7oc40kh3ph1",
                             "g5mb2ic40ih9iw7oc40kh3ph1", "g3mb2ic48ih9iw7oc48kh3ph1"}) {
      const ConvolutionProblem fused =
          fused_in(line, {type, KILN_MATH_DEFAULT}, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC);
      check_uniform(fused, engine.name(), 3, {.alpha = 0.5, .beta = 0.75});
      if (refusal_of(halos, fused).empty())
        check_uniform(fused, halos.name(), 3, {.alpha = 0.5, .beta = 0.75});
      check_uniform(nhwc(line, type, ConvolutionPass::wgrad), of_filters.name(), 4);
    }
}

// NaN and infinities stay in their group, and in the outputs whose taps read them.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  for (const char* line : {"g16mb2ic32ih6iw9oc32kh3ph1", "g8mb2ic32ih6iw9oc32kh3ph1",
                           "g4mb2ic32ih6iw9oc32kh3ph1", "g2mb2ic32ih6iw9oc32kh3ph1"})
    for (const ConvolutionPass pass :
         {ConvolutionPass::fprop, ConvolutionPass::dgrad, ConvolutionPass::wgrad})
      for (const bool second : {false, true}) {
        OperationCase item = integers_of(nhwc(line, KILN_DATA_HALF, pass), 5);
        replace_zeros(item);
        HostTensor& tensor = item.tensors[second ? 1 : 0];
        const auto size = static_cast<std::int64_t>(tensor.values.size());
        tensor.at(size / 3) = std::nan("");
        tensor.at(size / 2 + 5) = std::numeric_limits<double>::infinity();
        check_integers(item, pass == ConvolutionPass::wgrad ? of_filters.name() : engine.name());
        const auto& problem = std::get<ConvolutionProblem>(item.problem);
        if (pass != ConvolutionPass::wgrad && refusal_of(halos, problem).empty())
          check_integers(item, halos.name());
      }
}

BOOST_AUTO_TEST_CASE(infinity_beside_the_last_pixel) {
  for (const char* line : {"g8mb1ic32ih11iw11oc32kh2sh4sw4", "g8mb1ic32ih9iw9oc32kh1sh3sw3"})
    check_infinity_beside_the_last_pixel(nhwc(line, KILN_DATA_HALF, ConvolutionPass::wgrad),
                                         of_filters.name());
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(refusal_of(engine, nhwc("g8mb4ic32ih9oc32kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(refusal_of(engine, nhwc("g8mb4ic32ih9oc32kh3ph1", KILN_DATA_FLOAT)) ==
             "the data type is f32; this engine takes f16 and bf16");
  BOOST_TEST(refusal_of(engine, nhwc("g8mb4ic32ih9oc64kh3ph1", KILN_DATA_HALF)) ==
             "groups of 4 input and 8 output channels; this engine takes 2, 4, 8 or 16 of both");
  BOOST_TEST(refusal_of(engine, nhwc("g3mb4ic12ih9oc12kh3ph1", KILN_DATA_HALF)) ==
             "12 channels; expected a multiple of 8");
  const auto gradient = [](const char* line) {
    return refusal_of(of_filters, nhwc(line, KILN_DATA_HALF, ConvolutionPass::wgrad));
  };
  BOOST_TEST(gradient("g8mb4ic32ih9oc32kh3ph1") == "");
  BOOST_TEST(gradient("g8mb4ic24ih9oc24kh3ph1") ==
             "groups of 3 input and 3 output channels; this engine takes powers of two to 16");
  BOOST_TEST(gradient("g8mb4ic8ih9oc64kh3ph1") ==
             "groups of 1 input and 8 output channels; this engine takes ratios of at most four");
  BOOST_TEST(gradient("g8mb4ic32ih9iw90oc32kh1kw41") ==
             "41 taps in a row of the filter; expected at most 40");
}

BOOST_AUTO_TEST_SUITE_END()
