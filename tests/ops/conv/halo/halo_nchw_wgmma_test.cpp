// The halo engine with wgmma in NCHW: every tile shape and split count, warpgroups that share a
// tile's pixels, lines and strips that end within a tile, groups of taps.
#include <boost/test/unit_test.hpp>

#include "ops/conv/halo/warpgroup_case.hpp"

BOOST_AUTO_TEST_SUITE(halo_nchw_wgmma)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::halo_nchw_wgmma);

ConvolutionProblem nchw(const char* line, const Arithmetic& arithmetic,
                        ConvolutionPass pass = ConvolutionPass::fprop,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NCHW, pass, mode);
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }
void check_exact(const OperationCase& item) { check_integers(item, engine.name()); }

}  // namespace

// Split counts of one, two, five and eight. Some parts begin in the middle of a chunk of channels,
// and some are empty.
BOOST_AUTO_TEST_CASE(every_shape_and_every_split) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (const Arithmetic& arithmetic : arithmetics)
    for (const ConvolutionPass pass : passes) {
      if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // takes the same paths as f16
      const ConvolutionProblem problem = nchw("mb2ic70ih11iw10oc72kh3ph1", arithmetic, pass);
      const OperationCase item = integers_of(problem);
      const HostTensor want = item.expected();
      const std::vector<HaloWgmmaTile> tiles = engine.tiles(problem, device()->description());
      BOOST_TEST(tiles.size() >= 20);
      for (std::size_t i = 0; i < tiles.size(); ++i) {
        const HaloWgmmaTile& tile = tiles[i];
        if (i % 2 != (pass == ConvolutionPass::dgrad ? 1 : 0)) continue;
        for (const int parts : {1, 2, 5, 8}) {
          if ((i / 2 + static_cast<std::size_t>(parts)) % 3 != 0) continue;
          if (!share.takes(describe(tile), text_of(arithmetic), pass, parts)) continue;
          check_tile(engine, tile, parts, item, want);
        }
      }
    }
}

// Images of several strips and strips of several tiles, the last of which end beyond the image;
// rows of taps that are outside the source for all pixels of a tile.
BOOST_AUTO_TEST_CASE(strips_of_an_image) {
  if (!has_warpgroups()) return;
  const int checked = check_strips(engine,
                                   {"mb2ic24ih41iw19oc40kh3ph1", "mb1ic24ih50iw9oc40kh7kw5ph6pw2",
                                    "g2mb2ic34ih61iw33oc48kh2kw3pw2dh1"},
                                   KILN_TENSOR_NCHW, arithmetics);
  BOOST_TEST(checked >= 16);
}

// Sizes that no tile divides; padding smaller than the filter, as large, larger, and on one side
// only; dilations, groups, flipped filters; odd numbers of channels; images of two pixels; rows
// longer than a tile; filters of two taps, one row and one column.
BOOST_AUTO_TEST_CASE(edges) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases(1);
  int turn = 0;
  for (const char* line :
       {"mb3_ic41ih9iw7_oc24_kh3kw3_ph1pw1", "mb3_ic47ih11iw13_oc39_kh1kw3_ph0pw1",
        "mb2_ic48ih15iw11_oc56_kh3kw1", "g2mb5_ic126ih6iw6_oc64_kh2kw3_ph1pw2_dh1dw1",
        "mb1_ic31ih15iw31_oc48_kh5kw5_ph2pw2", "mb20_ic16ih3iw3_oc45_kh3kw3_ph1pw1",
        "mb1_ic16ih17iw18_oc29_kh9kw9_ph8pw8", "mb1_ic16ih5iw70_oc31_kh4kw3_ph3pw1_dh1dw2",
        "mb90_ic37ih1iw2_oc77_kh3kw3_ph1pw1", "mb3_ic72ih6iw5_oc48_kh2kw1",
        "mb2_ic72_ih25iw25_oc24_kh4kw4_dh2dw2", "mb2_ic24ih9iw300_oc24_kh2kw3_ph1pw0",
        "mb4_ic24ih7iw7_oc29_kh3kw3_ph4pw5", "mb2_ic24ih10iw9_oc32_oh10ow9_kh2kw2_ph0pw0",
        "mb2_ic32ih2iw3_oc32_kh3kw3_ph2pw2", "g3mb2_ic75ih7iw11_oc48_kh3kw4_pw2"})
    for (const ConvolutionPass pass : passes) {
      const kilnConvolutionMode_t mode = turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION;
      const Arithmetic& arithmetic =
          arithmetics[static_cast<std::size_t>(turn++ / 2) % std::size(arithmetics)];
      const ConvolutionProblem problem = nchw(line, arithmetic, pass, mode);
      BOOST_TEST(reason(problem) == "", line);
      if (share.takes(line, pass, mode, text_of(arithmetic))) check_exact(integers_of(problem));
    }
}

// Strides of rows, channels and images that leave gaps.
BOOST_AUTO_TEST_CASE(strides) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : arithmetics) {
    const ConvolutionOperands o =
        describe_convolution(parse_convolution_line("mb3ic24ih9iw14oc40kh3ph1"), arithmetic.type,
                             KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
    Tensor x = o.x, y = o.y;
    x.strides = {6401, 201, 17, 1};
    y.strides = {23001, 461, 41, 3};
    ConvolutionProblem problem = make_convolution(o.spec, x, o.w, y);
    problem.math = arithmetic.math;
    check_exact(integers_of(problem));
  }
}

// Sums so long that they are promoted, through local memory.
BOOST_AUTO_TEST_CASE(long_sums) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : arithmetics) {
    check_exact(integers_of(nchw("mb1_ic2783ih4iw5_oc24_kh3kw3", arithmetic)));
    check_exact(
        integers_of(nchw("mb1_ic24ih4iw5_oc2783_kh3kw3", arithmetic, ConvolutionPass::dgrad)));
  }
}

// 3xTF32: numbers with a lo part times numbers without one, and vice versa, with hi parts that are
// cut off and that are rounded. The sums are exact.
BOOST_AUTO_TEST_CASE(rests_of_either_operand) {
  if (!has_warpgroups()) return;
  constexpr int with_rest = (1 << 12) - 1;
  for (const char* line : {"mb2ic24ih9iw11oc40kh3ph1", "mb1ic352ih6iw7oc40kh3ph1"})
    for (const ConvolutionPass pass : passes)
      for (const bool first : {false, true}) {
        OperationCase item(nchw(line, {KILN_DATA_FLOAT, KILN_MATH_DEFAULT}, pass));
        item.tensors[0].fill_integers(3, first ? with_rest : 1);
        item.tensors[1].fill_integers(4, first ? 1 : with_rest);
        check_exact(item);
      }
}

// Sums that are promoted every 16 and every 64 products, of operands that are rounded and cut off.
BOOST_AUTO_TEST_CASE(three_products_err_no_more_than_f32) {
  if (!has_warpgroups()) return;
  for (const SquareForward& of :
       {SquareForward{24, 11, 16, 3}, SquareForward{72, 14, 16, 5}, SquareForward{144, 12, 16, 5}})
    check_error_of_three_products(engine.name(), of);
}

BOOST_AUTO_TEST_CASE(epilogue_and_alignment) {
  if (!has_warpgroups()) return;
  check_epilogues(engine, KILN_TENSOR_NCHW, true, arithmetics);
}

BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  check_nan_and_infinity(
      engine, KILN_TENSOR_NCHW,
      {"mb2ic16ih8iw8oc24kh3ph0", "mb3ic16ih6iw9oc24kh3ph1", "mb1ic352ih8iw9oc24kh3ph1"},
      arithmetics);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  const Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
  BOOST_TEST(reason(nchw("mb4ic32ih29oc64kh3ph1", f16)) == "");
  BOOST_TEST(reason(nchw("mb4ic32ih29oc64kh3ph1sh2sw2", f16)) == "a stride is 2; expected 1");
  BOOST_TEST(reason(nchw("mb4ic32ih29oc64kh1", f16)) ==
             "the filter has one tap, so no input would be reused");
  BOOST_TEST(reason(problem_in("mb4ic32ih29oc64kh3ph1", f16, KILN_TENSOR_NHWC)) ==
             "the pixels of a row are not contiguous (stride 1) in the input");
  const auto answer =
      engine.candidates(nchw("mb4ic32ih29oc64kh3ph1", f16), known_architecture("sm_100"));
  BOOST_TEST(std::get<Refusal>(answer).reason ==
             "sm_100 lacks the wgmma instructions, which sm_90a alone has");
}

BOOST_AUTO_TEST_SUITE_END()
