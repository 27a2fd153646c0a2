// Depthwise convolutions by Toeplitz products: every tile, both types, filters that end within a
// matrix and at its end, flipped ones, the epilogue; infinities and NaN, which must not be
// multiplied by the zeros beside the filter's weights.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/conv/toeplitz/toeplitz_nhwc_mma.hpp"
#include "engines/conv/toeplitz/wgrad_toeplitz_nhwc_mma.hpp"
#include "ops/conv/channels_last_case.hpp"

namespace {

using namespace test;

const RecipeEngine engine(toeplitz_nhwc_mma);
const RecipeEngine of_filters(::kiln::wgrad_toeplitz_nhwc_mma);

std::variant<std::vector<Candidate>, Refusal> ask_engine(const ConvolutionProblem& problem) {
  return engine.candidates(problem, device()->description());
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

}  // namespace

BOOST_AUTO_TEST_SUITE(toeplitz_nhwc, *boost::unit_test::precondition(has_copy_engine))

// Every tile, with pixels that end within it and with several tiles.
BOOST_AUTO_TEST_CASE(tiles) {
  std::set<std::string> seen;
  std::size_t turn = 0;
  for (const char* line : {"g16mb2ic16ih21iw35oc16kh11ph5", "g8mb1ic8ih3iw200oc8kh1kw31pw15"}) {
    OperationCase item = integers_of(nhwc(line, half_types[turn++ % std::size(half_types)]));
    item.scalars = {.alpha = 2, .beta = -1};
    item.fill_integers(7, 2);
    const HostTensor want = item.expected();
    const auto answer = ask_engine(std::get<ConvolutionProblem>(item.problem));
    for (const Candidate& candidate : std::get<std::vector<Candidate>>(answer)) {
      const Proposal proposal = engine.make(item.problem, device()->description(), candidate);
      seen.insert(proposal.first().kernel.tile);
      const std::string fault = difference(run_proposal(item, proposal), want);
      BOOST_TEST(fault.empty(), line << ", " << proposal.first().kernel.tile << ": " << fault);
    }
  }
  BOOST_TEST(seen.size() == 7U);
}

// Filters of one tap, with as many columns as a matrix and one more, and of one row or column.
BOOST_AUTO_TEST_CASE(shapes) {
  std::size_t turn = 0;
  for (const char* line :
       {"g8mb3ic8ih9iw11oc8kh1", "g16mb1ic16ih12iw18oc16kh2kw17ph1pw8",
        "g8mb1ic8ih9iw40oc8kh3kw18ph1pw3", "g24mb2ic24ih33iw9oc24kh31kw1ph15",
        "g8mb1ic8ih20iw36oc8kh16ph4", "g8mb1ic8ih36iw34oc8kh31ph15", "g8mb2ic8iw70oc8kw33pw16"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const OperationCase item =
          integers_in_turn(nhwc(line, half_types[(turn + turn / 2) % std::size(half_types)], pass,
                                mode_in_turn(turn)),
                           turn);
      check_integers(item, engine.name());
      ++turn;
    }
}

// Filter gradients by single blocks, clusters, and groups of blocks; rows and columns of dy that
// end within a tile, filters that end within a matrix and at its end.
BOOST_AUTO_TEST_CASE(filter_gradients) {
  std::size_t turn = 0;
  for (const char* line :
       {"g16mb3ic16ih9iw11oc16kh3ph1", "g16mb2ic16ih12iw18oc16kh2kw17ph1pw8",
        "g8mb2ic8ih9iw80oc8kh3kw16ph1pw3", "g24mb2ic24ih33iw9oc24kh31kw1ph15",
        "g8mb2ic8ih20iw36oc8kh16ph4", "g8mb1ic8ih61iw64oc8kh31ph15", "g8mb3iw300ic8oc8kw31pw15"}) {
    const OperationCase item = integers_in_turn(nhwc(line, half_types[turn % std::size(half_types)],
                                                     ConvolutionPass::wgrad, mode_in_turn(turn)),
                                                turn);
    check_split(of_filters, item, split_in_turn(turn++));
  }
}

BOOST_AUTO_TEST_CASE(fused_operations) {
  check_integers(
      integers_of(fused_in("g16mb2ic16ih9iw20oc16kh9ph4", {KILN_DATA_HALF, KILN_MATH_DEFAULT},
                           KILN_TENSOR_NHWC, KILN_TENSOR_NHWC)),
      engine.name());
}

BOOST_AUTO_TEST_CASE(random_numbers_of_both_types) {
  for (DataType type : half_types)
    for (const ConvolutionPass pass :
         {ConvolutionPass::fprop, ConvolutionPass::dgrad, ConvolutionPass::wgrad})
      check_uniform(nhwc("g16mb1ic16ih19iw21oc16kh13ph6", type, pass),
                    pass == ConvolutionPass::wgrad ? of_filters.name() : engine.name(), 3);
}

// NaN and infinities in the source, in weights, and in both. Neighboring tiles and images are not
// affected.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (DataType type : half_types)
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad})
      for (const bool in_source : {false, true})
        for (const bool in_weights : {false, true}) {
          OperationCase item = integers_of(nhwc("g8mb2ic8ih9iw80oc8kh5kw9ph2pw4", type, pass), 5);
          const char* const source = pass == ConvolutionPass::fprop ? "x" : "dy";
          replace_zeros(item);
          if (in_source) {
            item[source].at(0) = infinity;
            item[source].at(4 * 80 + 39) = std::nan("");
            item[source].at(3 * 9 * 80 + 8 * 80 + 79) = -infinity;
          }
          if (in_weights) {
            item["w"].at(2 * 45 + 4 * 9) = -infinity;
            item["w"].at(6 * 45 + 22) = std::nan("");
          }
          check_integers(item, engine.name());
        }
}

// The same for filter gradients: in x, in dy, and in both.
BOOST_AUTO_TEST_CASE(nan_and_infinity_in_filter_gradients) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (DataType type : half_types)
    for (const bool in_x : {false, true})
      for (const bool in_dy : {false, true}) {
        OperationCase item =
            integers_of(nhwc("g8mb2ic8ih9iw35oc8kh5kw9ph2pw4", type, ConvolutionPass::wgrad), 5);
        replace_zeros(item);
        if (in_x) {
          item["x"].at(0) = infinity;
          item["x"].at(9 * 35 + 34) = std::nan("");
          item["x"].at(3 * 9 * 35 + 4 * 35 + 17) = -infinity;
        }
        if (in_dy) {
          item["dy"].at(5 * 9 * 35) = -infinity;
          item["dy"].at(6 * 9 * 35 + 4 * 35 + 20) = std::nan("");
        }
        check_integers(item, of_filters.name());
      }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason(nhwc("g32mb4ic32ih9oc32kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(reason(nhwc("g16mb4ic32ih9oc32kh3ph1", KILN_DATA_HALF)) ==
             "2 input and 2 output channels a group; this engine takes one of each");
  BOOST_TEST(reason(nhwc("g32mb4ic32ih9oc32kh3ph1", KILN_DATA_FLOAT)) ==
             "the data type is f32; this engine takes f16 and bf16");
  BOOST_TEST(reason(nhwc("g32mb4ic32ih9oc32kh3ph1sh2", KILN_DATA_HALF)) ==
             "a stride is 2; expected 1");
  BOOST_TEST(reason(nhwc("g32mb4ic32ih9oc32kh3ph2dh1", KILN_DATA_HALF)) ==
             "the dilation is 2; expected 1");
  BOOST_TEST(reason(nhwc("g8mb1ic8ih200oc8kh127", KILN_DATA_HALF)) ==
             "the halo and the filter of no tile fit into shared memory");
}

BOOST_AUTO_TEST_SUITE_END()
