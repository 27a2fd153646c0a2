// The engines of filter gradients that copy x as lines, from NCHW or from few contiguous channels:
// every shape and split count, bands that fill their stages and bands that do not, and values
// beside the bands.
#include "engines/conv/wgrad/wgrad_nchw.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"
#include "ops/placed_case.hpp"

BOOST_AUTO_TEST_SUITE(wgrad_nchw)

namespace {

using namespace test;

ConvolutionProblem planar_problem(const char* line, const Arithmetic& arithmetic,
                                  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NCHW, ConvolutionPass::wgrad, mode);
}

// A problem whose x and dy have different layouts.
ConvolutionProblem mixed_problem(const char* line, const Arithmetic& arithmetic,
                                 kilnTensorFormat_t x_layout, kilnTensorFormat_t dy_layout) {
  const auto in = [&](kilnTensorFormat_t layout) {
    return describe_convolution(parse_convolution_line(line), arithmetic.type, layout,
                                KILN_CROSS_CORRELATION);
  };
  const ConvolutionOperands x = in(x_layout), dy = in(dy_layout);
  ConvolutionSpec spec = x.spec;
  spec.math = arithmetic.math;
  return make_convolution_wgrad(spec, x.x, dy.y, x.w);
}

const RecipeEngine on_warps(::kiln::wgrad_nchw_mma);
const RecipeEngine on_warpgroups(::kiln::wgrad_nchw_wgmma_swap);

// The engines that the device supports for a type.
std::vector<const RecipeEngine<BandTile>*> engines_of(DataType type) {
  std::vector<const RecipeEngine<BandTile>*> all = {&on_warps};
  if (has_warpgroups() && type != KILN_DATA_DOUBLE) all.push_back(&on_warpgroups);
  return all;
}

void check_exact(const OperationCase& item) {
  const DataType type = std::get<ConvolutionProblem>(item.problem).type();
  for (const RecipeEngine<BandTile>* each : engines_of(type)) check_integers(item, each->name());
}

BandTile tile_of(const ConvolutionProblem& problem) {
  return on_warps.tiles(problem, device()->description()).front();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_shape_and_every_split) {
  kiln_test::ShareOfCases share = share_of_cases();
  const DeviceDescription& description = device()->description();
  for (const Arithmetic& arithmetic : with_f64) {
    if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // as f16
    const ConvolutionProblem problem = planar_problem("mb5ic24ih9iw10oc72kh3ph1", arithmetic);
    const OperationCase item = integers_of(problem);
    const HostTensor want = item.expected();
    for (const RecipeEngine<BandTile>* each : engines_of(arithmetic.type)) {
      const std::vector<BandTile> tiles = each->tiles(problem, description);
      BOOST_TEST(tiles.size() >= 5);
      for (const BandTile& tile : tiles)
        for (const int parts : {1, 3, 8}) {
          if (parts > description.largest_cluster ||
              !share.takes(cat(each->name(), " ", describe(tile)), text_of(arithmetic), parts))
            continue;
          const Proposal proposal = each->propose(tile, problem, description, {parts});
          const std::string fault = difference(run_proposal(item, proposal), want);
          BOOST_TEST(fault.empty(), each->name() << ", " << describe(tile) << ", " << parts
                                                 << " parts: " << fault);
        }
    }
  }
}

// The same for few contiguous channels of x and contiguous filters of dy; some parts have no band.
BOOST_AUTO_TEST_CASE(every_shape_of_few_channels) {
  kiln_test::ShareOfCases share = share_of_cases();
  const DeviceDescription& description = device()->description();
  for (const Arithmetic& arithmetic : with_f64) {
    if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // as f16
    const ConvolutionProblem problem = problem_in("mb3ic3ih9iw13oc72kh5kw4ph2pw1", arithmetic,
                                                  KILN_TENSOR_NHWC, ConvolutionPass::wgrad);
    const OperationCase item = integers_of(problem);
    const HostTensor want = item.expected();
    for (const RecipeEngine<BandTile>* each : engines_of(arithmetic.type)) {
      const std::vector<BandTile> tiles = each->tiles(problem, description);
      BOOST_TEST(tiles.size() >= 5);
      for (const BandTile& tile : tiles) {
        BOOST_TEST(tile.filters_inner);
        for (const int parts : {1, 8}) {
          if (parts > description.largest_cluster ||
              !share.takes(cat(each->name(), " ", describe(tile)), text_of(arithmetic), parts))
            continue;
          const std::string fault = difference(
              run_proposal(item, each->propose(tile, problem, description, {parts})), want);
          BOOST_TEST(fault.empty(), each->name() << ", " << describe(tile) << ", " << parts
                                                 << " parts: " << fault);
        }
      }
    }
  }
}

// Odd channels and strides; filters of one column, for which a dilation of columns has no effect;
// one channel, whose pixels are contiguous in either layout; x and dy with different layouts.
BOOST_AUTO_TEST_CASE(few_channels_side_by_side) {
  int turn = 0;
  constexpr kilnTensorFormat_t nchw = KILN_TENSOR_NCHW, nhwc = KILN_TENSOR_NHWC;
  for (const auto& [line, x, dy] :
       {std::tuple("mb2_ic3ih19iw23_oc32_kh7kw7_ph3pw3_sh2sw2", nhwc, nhwc),
        {"mb3_ic5ih11iw14_oc24_kh3kw2_pw1", nhwc, nhwc},
        {"mb2_ic12ih6iw9_oc40_kh3kw3_ph1pw1", nhwc, nhwc},
        {"mb2_ic6ih13iw12_oc24_kh3kw1_ph2_dh1dw3", nhwc, nhwc},
        {"mb2_ic3ih30iw29_oc96_kh11kw11_ph2pw2_sh4sw4", nhwc, nhwc},
        {"mb4_ic1ih9iw11_oc16_kh3kw3_ph1pw1", nhwc, nhwc},
        {"mb2_ic3ih9iw11_oc40_kh3kw3_ph1pw1", nhwc, nchw},
        {"mb2_ic24ih9iw11_oc40_kh3kw3_ph1pw1", nchw, nhwc},
        {"mb2_ic20ih8iw8_oc24_kh1kw1", nchw, nhwc}})
    for (int i = 0; i < 2; ++i)
      check_exact(integers_of(mixed_problem(line, in_turn(turn++), x, dy)));
}

// Rows of odd lengths, whose last word holds only one pixel; bands that end before or behind the
// end of the image; strips; strides with and without columns between taps; dilations whose taps are
// all at even columns; groups; images of four pixels; filters of one tap and of one row; numbers of
// columns that no tile divides.
BOOST_AUTO_TEST_CASE(edges) {
  kiln_test::ShareOfCases share = share_of_cases();
  int turn = 0;
  for (const char* line : {"mb2_ic8ih5iw64_oc32_kh1kw1_ph1pw1",
                           "mb2_ic32ih9iw32_oc40_kh3kw3_ph1pw1",
                           "mb1_ic4ih6iw260_oc16_kh3kw5_ph1pw2",
                           "mb3_ic20ih9iw7_oc24_kh3kw3_ph1pw1",
                           "mb3_ic8ih11iw13_oc40_kh1kw3_ph0pw1",
                           "mb2_ic17ih15iw11_oc50_kh3kw1",
                           "g2mb5_ic24ih6iw6_oc64_kh2kw3_ph1pw2_dh1dw1",
                           "mb1_ic5ih23iw40_oc48_kh5kw5_ph2pw2",
                           "mb2_ic6ih13iw9_oc72_kh3kw3_ph1pw1_sh2sw2",
                           "mb2_ic3ih19iw23_oc32_kh7kw7_ph3pw3_sh4sw4",
                           "mb20_ic16ih3iw3_oc40_kh3kw3_ph1pw1",
                           "mb1_ic4ih17iw18_oc24_kh9kw9_ph8pw8",
                           "mb1_ic3ih5iw70_oc24_kh4kw3_ph3pw1_dh1dw2",
                           "mb2_ic96ih2iw2_oc96_kh3kw3_ph1pw1",
                           "mb3_ic33ih7iw8_oc16_kh1kw1",
                           "mb2_ic2ih3iw201_oc16_kh3kw3_ph1pw1_sh1sw3",
                           "mb1_ic7ih8iw300_oc17_kh2kw2",
                           "mb3_ic20ih9iw1_oc24_kh3kw1_ph1",
                           "mb2_ic16ih9iw7_oc32_kh3kw7",
                           "mb2_ic40ih9iw17_oc40_kh1kw1_sh2sw2"})
    for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION})
      for (int i = 0; i < 2; ++i, ++turn)
        if (share.takes(line, mode, text_of(in_turn(turn))))
          check_exact(integers_of(planar_problem(line, in_turn(turn), mode)));
}

// Copies of dy of every width. Operands that are only aligned to their elements are copied one by
// one.
BOOST_AUTO_TEST_CASE(copies_of_every_width) {
  std::set<int> widths;
  for (const char* line : {"mb2ic8ih10iw10oc16kh3ph0", "mb2ic8ih8iw8oc16kh3ph0",
                           "mb2ic8ih8iw9oc16kh3ph0", "mb2ic8ih9iw9oc16kh3ph0"})
    for (const Arithmetic& arithmetic : with_f64) {
      ConvolutionProblem problem = planar_problem(line, arithmetic);
      widths.insert(tile_of(problem).copy_bytes);
      check_exact(integers_of(problem));
      problem.alignment = static_cast<std::int64_t>(size_of(problem.type()));
      BOOST_TEST(tile_of(problem).copy_bytes == problem.alignment);
      const OperationCase item = integers_of(problem);
      for (const RecipeEngine<BandTile>* each : engines_of(arithmetic.type))
        BOOST_TEST(difference(run_shifted(item, 1, each->name()), item.expected()) == "");
    }
  BOOST_TEST((widths == std::set<int>{2, 4, 8, 16}));
}

// Sums so long that they are promoted many times.
BOOST_AUTO_TEST_CASE(long_sums) {
  for (const Arithmetic& arithmetic : with_f64)
    check_exact(integers_of(planar_problem("mb4ic2ih48iw48oc16kh3ph1", arithmetic)));
}

// An infinity is multiplied by lo parts that are zero and, in all types, by the padding of stages:
// half words at the ends of rows, and elements of x below and beside all taps, which the stride
// skips.
BOOST_AUTO_TEST_CASE(nan_and_infinity_go_where_they_are_read) {
  for (const char* line : {"mb2ic16ih8iw8oc24kh3ph0", "mb2ic16ih9iw9oc24kh3ph0",
                           "mb2ic16ih10iw9oc24kh3ph0sh3sw3", "mb3ic6ih14iw11oc24kh2kw3ph0sh2sw1"})
    for (const Arithmetic& arithmetic : with_f64) {
      OperationCase item = integers_of(planar_problem(line, arithmetic), 5);
      HostTensor& x = item["x"];
      replace_zeros(item);
      const auto plane = static_cast<std::size_t>(x.operand.strides[1]);
      x.values[plane - 1] = std::numeric_limits<double>::infinity();
      x.values[3 * plane - 1] = -std::numeric_limits<double>::infinity();
      x.values[4 * plane] = std::nan("");
      item["dy"].values[5] = std::numeric_limits<double>::infinity();
      check_exact(item);
    }
  for (const char* line : {"mb2ic3ih9iw9oc24kh3ph0", "mb3ic2ih14iw11oc24kh2kw3ph0sh2sw1"})
    for (const Arithmetic& arithmetic : with_f64) {
      OperationCase item =
          integers_of(problem_in(line, arithmetic, KILN_TENSOR_NHWC, ConvolutionPass::wgrad), 5);
      replace_zeros(item);
      item["x"].values.back() = std::numeric_limits<double>::infinity();
      item["x"].values[7] = std::nan("");
      item["dy"].values[30] = -std::numeric_limits<double>::infinity();
      check_exact(item);
    }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  const auto reason = [&](const ConvolutionProblem& problem) {
    return refusal_of(on_warps, problem);
  };
  const Arithmetic f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
  BOOST_TEST(reason(planar_problem("mb4ic8ih9oc32kh3ph1", f32)) == "");
  BOOST_TEST(reason(planar_problem("mb4ic8ih9oc8kh3ph1", f32)) ==
             "8 filters a group; with fewer than 16 most of this engine's work would be idle");
  BOOST_TEST(reason(planar_problem("mb4ic8ih99oc32kh3ph1sh13sw13", f32)) ==
             "the stride along the width is 13; expected at most 12");
  BOOST_TEST(reason(planar_problem("mb4ic8id5ih9oc32kd3kh3ph1", f32)) ==
             "three dimensions of space; this engine takes one and two");
  BOOST_TEST(reason(planar_problem("mb1ic300ih3iw6000011oc32kh3ph1", f32)) ==
             "no band of pixels fits into shared memory, or offsets into 32 bits");
  const auto side_by_side = [&](const char* line, kilnConvolutionMode_t mode) {
    return reason(problem_in(line, f32, KILN_TENSOR_NHWC, ConvolutionPass::wgrad, mode));
  };
  constexpr const char* apart = "the pixels of a row are not contiguous (stride 1) in x";
  BOOST_TEST(side_by_side("mb4ic3ih9oc32kh3ph1", KILN_CROSS_CORRELATION) == "");
  BOOST_TEST(side_by_side("mb4ic16ih9oc32kh3ph1", KILN_CROSS_CORRELATION) == apart);
  BOOST_TEST(side_by_side("mb4ic3ih9oc32kh3ph1", KILN_CONVOLUTION) == apart);
  BOOST_TEST(side_by_side("mb4ic3ih9oc32kh3ph1dw1", KILN_CROSS_CORRELATION) == apart);
  BOOST_TEST(side_by_side("g2mb4ic6ih9oc64kh3ph1", KILN_CROSS_CORRELATION) == apart);
  BOOST_TEST(side_by_side("mb4ic3ih9oc30kh3ph1", KILN_CROSS_CORRELATION) ==
             "30 filters a group; expected a multiple of 4, which are copied at a time");
  const ConvolutionProblem f64 =
      planar_problem("mb4ic8ih9oc32kh3ph1", {KILN_DATA_DOUBLE, KILN_MATH_DEFAULT});
  BOOST_TEST(reason(f64) == "");
  BOOST_TEST(refusal_of(on_warpgroups, f64) ==
             "the data type is f64; this engine takes f32, f16 and bf16");
}

BOOST_AUTO_TEST_SUITE_END()
