// The dense engine for channels-last filter gradients: every tile, clusters and groups of blocks,
// tails in all dimensions, strides, padding and flipped filters.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <span>

#include "engines/conv/dense/wgrad/wgrad_dense_wgmma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(wgrad_dense)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::wgrad_dense_nhwc_wgmma);
constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
constexpr Arithmetic bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT};
constexpr Arithmetic tf32{KILN_DATA_FLOAT, KILN_MATH_TF32};
constexpr Arithmetic f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
constexpr Arithmetic taken[] = {f16, tf32, bf16, f32};

ConvolutionProblem nhwc(const char* line, const Arithmetic& arithmetic = f16,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NHWC, ConvolutionPass::wgrad, mode);
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

const ConvolutionProblem& problem_of(const OperationCase& item) {
  return std::get<ConvolutionProblem>(item.problem);
}

// All tiles, also those of which much is idle.
std::span<const WgradDenseTile> tiles_of(const ConvolutionProblem& problem) {
  return wgrad_dense_tiles(size_of(problem.type()), false, is_split(problem));
}

// A persistent tile is launched with two blocks, so that each takes several tiles in turn.
void check_tile(const WgradDenseTile& tile, int cluster, int groups, const OperationCase& item,
                const HostTensor& want) {
  if (!takes(tile, problem_of(item), make_gather(problem_of(item)))) return;
  DeviceDescription description = device()->description();
  if (tile.persistent()) {
    description.multiprocessors = 2;
    cluster = groups = 1;
  }
  const Proposal proposal = engine.propose(tile, problem_of(item), description, {cluster, groups});
  const std::string fault = difference(run_proposal(item, proposal), want);
  BOOST_TEST(fault.empty(), text_of(item.problem)
                                << ", " << describe(tile) << ", clusters of " << cluster << ", "
                                << groups << " groups: " << fault);
}

// Checks two small tiles, in single blocks and split, which take turns from call to call.
void check(const OperationCase& item, std::size_t turn) {
  const HostTensor want = item.expected();
  const auto tiles = tiles_of(problem_of(item));
  const std::size_t small[] = {3, tiles.size() - 1, tiles.size() / 2, tiles.size() - 2};
  constexpr int clusters[] = {1, 2, 4}, groups[] = {1, 1, 3, 2};
  for (std::size_t i = 0; i < 2; ++i)
    check_tile(tiles[small[(2 * turn + i) % std::size(small)]],
               clusters[(turn + i) % std::size(clusters)],
               groups[(turn + 2 * i) % std::size(groups)], item, want);
}

}  // namespace

// Pixels, channels and filters that end within a tile; blocks without a step.
BOOST_AUTO_TEST_CASE(every_tile_and_every_split) {
  if (!has_warpgroups()) return;
  constexpr std::pair<int, int> splits[] = {{1, 1}, {2, 1}, {1, 3}, {4, 1}, {2, 4}, {8, 1}};
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0;
  for (const Arithmetic& arithmetic : taken) {
    const OperationCase item = integers_of(nhwc("mb3ic72ih13iw11oc136kh1kw3pw1", arithmetic));
    const HostTensor want = item.expected();
    for (const WgradDenseTile& tile : tiles_of(problem_of(item)))
      for (std::size_t i = 0; i < std::size(splits); ++i) {
        const auto [cluster, groups] = splits[i];
        if ((!kiln_test::quick_tier() && i == turn % std::size(splits)) ||
            share.takes(describe(tile), arithmetic.type, i))
          check_tile(tile, cluster, groups, item, want);
        ++turn;
      }
  }
}

// Padding smaller than the filter, as large, larger, and on one side only; dilations, flipped
// filters, images of one pixel, strides, pixels of dy that are not equally far apart.
BOOST_AUTO_TEST_CASE(edges) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line : {"mb3ic40ih9iw7oc24kh3ph1", "mb2ic48ih5iw11oc56kh3kw1",
                           "mb1ic72ih7iw9oc48kh5kw3ph2pw2", "mb70ic136ih1iw1oc72kh1",
                           "mb1ic16ih5iw30oc24kh4kw3ph3pw1dh1dw2", "mb3ic40ih9iw8oc24kh3ph1sh2sw2",
                           "mb2ic24ih9iw8oc40kh1sh2sw2", "mb1ic16ih13iw9oc24kh3sh4sw1dh2"}) {
    OperationCase item = integers_of(
        nhwc(line, taken[turn % 4], turn % 2 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
    if (turn % 2 == 1) {
      item.scalars = {.alpha = -2, .beta = 3};
      item.fill_integers(7, 2);
    }
    check(item, turn++);
  }
}

// Operands of 16 bits with results in f32.
BOOST_AUTO_TEST_CASE(results_of_f32) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const Arithmetic& arithmetic : {f16, bf16}) {
    ConvolutionOperands o =
        describe_convolution(parse_convolution_line("mb3ic40ih9iw7oc24kh3ph1"), arithmetic.type,
                             KILN_TENSOR_NHWC, KILN_CROSS_CORRELATION);
    o.w.type = KILN_DATA_FLOAT;
    OperationCase item = integers_of(make_convolution_wgrad(o.spec, o.x, o.y, o.w));
    item.scalars = {.alpha = 0.5, .beta = 1};
    item.fill_integers(5, 3);
    check(item, turn++);
    // Persistent tiles store 16 bits, so they do not take these problems.
    const auto answer = engine.candidates(item.problem, device()->description());
    for (const Candidate& candidate : std::get<std::vector<Candidate>>(answer))
      BOOST_TEST(!engine.tiles(problem_of(item), device()->description())
                      .at(static_cast<std::size_t>(candidate.kernel))
                      .persistent());
  }
}

// A channels-first dy, also in planes that are no multiple of a step, with a channels-last x; dw in
// any order.
BOOST_AUTO_TEST_CASE(dy_and_dw_in_another_order) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"mb3ic40ih8oc72kh3ph1", "mb2ic72ih16iw15oc136kh1sh2", "mb3ic24iw128oc40kw5pw2",
        "mb2ic16id4ih4iw4oc24kd3kh3kw3pd1ph1pw1", "g2mb2ic64ih8iw16oc128kh3ph1",
        "mb5ic40ih4iw20oc72kh3ph1", "mb3ic24ih8iw12oc40kh3sh1ph1",
        "mb4ic16id3ih4iw4oc24kd3kh1kw1pd1ph0pw0", "mb3ic40iw16oc24kw3pw1"})
    for (const bool first : {true, false}) {
      ConvolutionProblem problem = nhwc(line, turn % 2 == 0 ? f16 : bf16);
      if (first) problem.y_strides = dense_operand_strides(KILN_TENSOR_NCHW, problem.y_dims());
      problem.w_strides = dense_operand_strides(KILN_TENSOR_NCHW, problem.w_dims());
      OperationCase item = integers_of(problem);
      if (turn % 3 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      const HostTensor want = item.expected();
      const auto tiles = tiles_of(problem);
      for (std::size_t i = 0, checked = 0; checked < 2 && i < tiles.size(); ++i) {
        const WgradDenseTile& tile = tiles[(5 * turn + i) % tiles.size()];
        if (!takes(tile, problem, make_gather(problem))) continue;
        check_tile(tile, 1, checked == 0 ? 1 : 3, item, want);
        ++checked;
      }
      ++turn;
    }
  ConvolutionProblem other = nhwc("mb3ic40ih4iw6oc72kh3ph1");
  other.y_strides = dense_operand_strides(KILN_TENSOR_NCHW, other.y_dims());
  BOOST_TEST(reason(other) ==
             "dy has its channels first, in planes of 24 pixels; expected a multiple of 16, or "
             "channels last");
}

// The line of dy that ends a plane ends with zeros, and beside them are pixels of the next image's
// x: infinities there must not become NaN.
BOOST_AUTO_TEST_CASE(infinite_pixels_of_the_next_image) {
  if (!has_warpgroups()) return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  ConvolutionProblem problem = nhwc("mb2ic40ih4iw20oc72kh1", f16);
  problem.y_strides = dense_operand_strides(KILN_TENSOR_NCHW, problem.y_dims());
  OperationCase item = integers_of(problem);
  const auto tiles = tiles_of(problem);
  const auto tile = std::ranges::find_if(tiles, [&](const WgradDenseTile& each) {
    return takes(each, problem, make_gather(problem));
  });
  BOOST_REQUIRE(tile != tiles.end());
  // The second image's first pixel, of one channel; each of that channel's sums has one product of
  // it, so none is NaN.
  replace_zeros(item);
  item.tensors[0].at(80 * 40) = infinity;
  check_tile(*tile, 1, 1, item, item.expected());
}

// One and three dimensions of space; padding after x that differs from the padding before it.
BOOST_AUTO_TEST_CASE(lines_volumes_and_uneven_padding) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"mb3ic40iw37oc24kw3pw1", "mb2ic24ih9iw7oh11ow6oc16kh3kw3ph1",
        "mb2ic72id5ih4iw7oc40kd3kh3kw3pd1ph1pw1", "mb1ic16id6ih5iw9oc24kd3kh1kw2pd2ph0pw0dd1dh0dw0",
        "mb3ic16id7ih6iw9oc24kd3kh3kw3pd1ph1pw1sd2sh2sw2",
        "mb2ic24id6ih4iw5od2oc40kd2kh1kw1pd1ph0pw0sd3sh1sw1"}) {
    check(integers_of(nhwc(line, taken[turn % 4],
                           turn % 2 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION)),
          turn);
    ++turn;
  }
}

// Groups of many channels, and groups of few that are computed as one, of which only the products
// within a group are stored.
BOOST_AUTO_TEST_CASE(groups) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"g2mb2ic144ih9iw7oc80kh3ph1", "g4mb2ic128ih5iw7oc64kh3ph1", "g8mb1ic64ih7iw5oc64kh1",
        "g3mb3ic120ih6iw5oc48kh3ph1sh2", "g6mb1ic96id3ih4iw5oc144kd2kh1kw3pd1ph0pw1"}) {
    OperationCase item = integers_of(nhwc(line, taken[turn % 4]));
    if (turn % 2 == 1) {
      item.scalars = {.alpha = -2, .beta = 3};
      item.fill_integers(7, 2);
    }
    check(item, turn++);
  }
  OperationCase item = integers_of(nhwc("g4mb1ic128ih5iw6oc128kh3ph1"), 5);
  item["x"].at(20) = std::nan("");
  item["dy"].at(400) = std::numeric_limits<double>::infinity();
  check_integers(item, engine.name());
}

// NaN and infinities reach the sums that read them, and no others.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : taken) {
    OperationCase item = integers_of(nhwc("mb3ic16ih6iw9oc24kh3", arithmetic), 5);
    item["x"].at(20) = std::nan("");
    item["x"].at(item["x"].values.size() - 1) = -std::numeric_limits<double>::infinity();
    item["dy"].at(100) = std::numeric_limits<double>::infinity();
    replace_zeros(item);
    check_integers(item, engine.name());
  }
}

// 3xTF32 sums that an infinity, or an overflow of scaled values, has spoiled are computed again: by
// a single block, by a cluster, and by a second step.
BOOST_AUTO_TEST_CASE(spoiled_sums) {
  if (!has_warpgroups()) return;
  OperationCase item = integers_of(nhwc("g2mb3ic24ih7iw9oc40kh3ph1", f32), 5);
  item.scalars = {.alpha = -2, .beta = 3};
  item.fill_integers(7, 2);
  item["x"].at(50) = 0x1p104;
  item["dy"].at(77) = -0x1p105;
  item["dy"].at(301) = std::numeric_limits<double>::infinity();
  const HostTensor want = item.expected();
  for (const auto& [cluster, groups] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}})
    check_tile(tiles_of(problem_of(item))[4], cluster, groups, item, want);
}

BOOST_AUTO_TEST_CASE(random_numbers_and_the_same_bits) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : taken) {
    OperationCase item(nhwc("mb4ic136ih7iw9oc72kh3ph1", arithmetic));
    item.fill_uniform(3);
    for (const auto& [cluster, groups] : {std::pair(1, 1), {2, 1}, {2, 2}}) {
      const Proposal proposal = engine.propose(tiles_of(problem_of(item))[3], problem_of(item),
                                               device()->description(), {cluster, groups});
      const HostTensor first = run_proposal(item, proposal);
      const std::string fault = item.fault(first);
      BOOST_TEST(fault.empty(), fault);
      BOOST_TEST(difference(run_proposal(item, proposal), first) == "");
    }
  }
}

// Sums so long that they are promoted. They are sums of ones, which f32 adds up exactly.
BOOST_AUTO_TEST_CASE(long_sums) {
  if (!has_warpgroups()) return;
  OperationCase item = integers_of(nhwc("mb1ic8ih260iw260oc8kh1"));
  for (const char* tensor : {"x", "dy"})
    for (double& value : item[tensor].values) value = tensor[0] == 'x' ? 1 : 0x1p-4;
  for (const std::size_t tile : {10, 14})
    check_tile(tiles_of(problem_of(item))[tile], 1, 1, item, item.expected());
}

BOOST_AUTO_TEST_CASE(workspace_is_what_was_granted_or_less) {
  if (!has_warpgroups()) return;
  const auto answer =
      engine.candidates(nhwc("mb32ic256ih56oc256kh3ph1"), known_architecture("h100"));
  int with = 0;
  for (const Candidate& candidate : std::get<std::vector<Candidate>>(answer)) {
    BOOST_TEST(candidate.workspace <= most_workspace);
    with += candidate.workspace > 0;
  }
  BOOST_TEST(with > 0);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1")) == "");
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1", f32)) == "");
  BOOST_TEST(reason(nhwc("mb4ic32ih3oc64kh1", f32)) ==
             "each output is a sum of 288 products; below 320 3xTF32 has to be promoted more often "
             "than this engine does");
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1", {KILN_DATA_DOUBLE, KILN_MATH_DEFAULT})) ==
             "the data type is f64; this engine takes f32, f16 and bf16");
  BOOST_TEST(reason(nhwc("mb4ic36ih29oc64kh3ph1")) ==
             "36 input channels; expected a multiple of 8");
  BOOST_TEST(reason(nhwc("mb4ic36ih29oc64kh3ph1", tf32)) == "");
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc62kh3ph1", tf32)) ==
             "62 output channels; expected a multiple of 4");
  BOOST_TEST(reason(nhwc("g2mb4ic32ih29oc64kh3ph1")) == "");
  BOOST_TEST(
      reason(problem_in("mb4ic32ih29oc64kh3ph1", f16, KILN_TENSOR_NCHW, ConvolutionPass::wgrad)) ==
      "the channels of x are not contiguous (stride 1), as channels-last layout has them");
}

BOOST_AUTO_TEST_SUITE_END()
