// The dense engine for channels-first filter gradients: every tile, clusters and groups of blocks,
// tails in all dimensions.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <span>

#include "engines/conv/dense/wgrad/wgrad_dense_wgmma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(wgrad_dense_nchw)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::wgrad_dense_nchw_wgmma);
constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
constexpr Arithmetic bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT};
constexpr Arithmetic tf32{KILN_DATA_FLOAT, KILN_MATH_TF32};
constexpr Arithmetic taken[] = {bf16, tf32, f16};

ConvolutionProblem nchw(const char* line, const Arithmetic& arithmetic = f16) {
  return problem_in(line, arithmetic, KILN_TENSOR_NCHW, ConvolutionPass::wgrad);
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

// All tiles, also those of which much is idle.
std::span<const WgradDenseTile> tiles_of(const ConvolutionProblem& problem) {
  return wgrad_dense_tiles(size_of(problem.type()), true, is_split(problem));
}

void check_tile(const WgradDenseTile& tile, int cluster, int groups, const OperationCase& item,
                const HostTensor& want) {
  const Proposal proposal = engine.propose(tile, std::get<ConvolutionProblem>(item.problem),
                                           device()->description(), {cluster, groups});
  const std::string fault = difference(run_proposal(item, proposal), want);
  BOOST_TEST(fault.empty(), text_of(item.problem)
                                << ", " << describe(tile) << ", clusters of " << cluster << ", "
                                << groups << " groups: " << fault);
}

// Checks three tiles, in single blocks and split, which take turns from call to call.
void check(const OperationCase& item, std::size_t turn) {
  BOOST_TEST_REQUIRE(reason(std::get<ConvolutionProblem>(item.problem)) == "");
  const HostTensor want = item.expected();
  const auto tiles = tiles_of(std::get<ConvolutionProblem>(item.problem));
  constexpr int clusters[] = {1, 2, 4}, groups[] = {1, 1, 3, 2};
  for (std::size_t i = 0; i < 3; ++i)
    check_tile(tiles[(4 * turn + 3 * i + 1) % tiles.size()],
               clusters[(turn + i) % std::size(clusters)],
               groups[(turn + 2 * i) % std::size(groups)], item, want);
}

}  // namespace

// Planes, channels and filters that end within a tile.
BOOST_AUTO_TEST_CASE(every_tile_and_every_split) {
  if (!has_warpgroups()) return;
  constexpr std::pair<int, int> splits[] = {{1, 1}, {2, 1}, {1, 3}, {4, 1}, {2, 4}, {8, 1}};
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0;
  for (const Arithmetic& arithmetic : {f16, tf32}) {
    const OperationCase item = integers_of(nchw("mb3ic72ih13iw16oc136kh1", arithmetic));
    const HostTensor want = item.expected();
    for (const WgradDenseTile& tile : tiles_of(std::get<ConvolutionProblem>(item.problem)))
      for (std::size_t i = 0; i < std::size(splits); ++i) {
        const auto [cluster, groups] = splits[i];
        if ((!kiln_test::quick_tier() && i == turn % std::size(splits)) ||
            share.takes(describe(tile), arithmetic.type, i))
          check_tile(tile, cluster, groups, item, want);
        ++turn;
      }
  }
}

// One and three dimensions of space, small images.
BOOST_AUTO_TEST_CASE(planes) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"mb5ic136ih8oc80kh1", "mb3ic24iw40oc72kw1", "mb2ic40id2ih6iw8oc16kd1kh1kw1",
        "mb1ic264ih4iw2oc200kh1", "mb2ic30ih4iw4oc37kh1"}) {
    OperationCase item = integers_of(nchw(line, taken[turn % std::size(taken)]));
    if (turn % 4 > 1) {
      item.scalars = {.alpha = -2, .beta = 3};
      item.fill_integers(7, 2);
    }
    check(item, turn++);
  }
}

// Single groups, and narrow groups computed as one.
BOOST_AUTO_TEST_CASE(groups) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"g2mb2ic128ih8iw9oc160kh1", "g4mb3ic64ih4iw10oc32kh1", "g2mb2ic128ih8oc64kh1"}) {
    check(integers_of(nchw(line, taken[turn % std::size(taken)])), turn);
    ++turn;
  }
}

// Sums so long that they are promoted.
BOOST_AUTO_TEST_CASE(long_sums) {
  if (!has_warpgroups()) return;
  check(integers_of(nchw("mb2ic8ih200iw180oc8kh1")), 0);
}

// NaN and infinities reach the sums that read them, and no others: pixels beyond a plane are zeros.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  for (const char* line : {"mb3ic24ih6iw12oc24kh1", "mb3ic24ih7iw8oc24kh1"}) {
    OperationCase item = integers_of(nchw(line), 5);
    item["x"].at(20) = std::nan("");
    item["x"].at(800) = std::numeric_limits<double>::infinity();
    item["dy"].at(item["dy"].values.size() - 1) = -std::numeric_limits<double>::infinity();
    replace_zeros(item);
    check_integers(item, engine.name());
  }
}

// Random numbers against sums in double precision.
BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : taken)
    for (const char* line : {"mb2ic136ih12iw10oc72kh1", "mb5ic136ih7iw8oc72kh1"}) {
      OperationCase item(nchw(line, arithmetic));
      item.fill_uniform(3);
      const std::string fault = test::check(item, engine.name());
      BOOST_TEST(fault.empty(), fault);
    }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh1")) == "");
  BOOST_TEST(reason(nchw("mb4ic32ih14oc64kh1")) ==
             "the channel stride of x is 196; expected a multiple of 8, for copies of 16 bytes");
  BOOST_TEST(reason(nchw("mb4ic32ih14oc64kh1", tf32)) == "");
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh1", {KILN_DATA_FLOAT, KILN_MATH_DEFAULT})) ==
             "the data type is f32; this engine takes f16, bf16, and f32 in TF32");
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh3ph1")) == "the filter has 9 taps; expected one");
  BOOST_TEST(reason(nchw("mb4ic33ih8oc64kh1")) ==
             "the channels of dw are not contiguous, in pairs");
}

BOOST_AUTO_TEST_SUITE_END()
