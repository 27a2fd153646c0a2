// The halo engine with wgmma in NHWC: every tile shape and split count, lines whose rows and images
// end within a tile, many halos in flight for few taps, and places that are no output pixels.
#include <boost/test/unit_test.hpp>

#include "ops/conv/halo/warpgroup_case.hpp"

BOOST_AUTO_TEST_SUITE(halo_nhwc_wgmma)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::halo_nhwc_wgmma);

ConvolutionProblem nhwc(const char* line, const Arithmetic& arithmetic,
                        ConvolutionPass pass = ConvolutionPass::fprop,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NHWC, pass, mode);
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }
void check_exact(const OperationCase& item) { check_integers(item, engine.name()); }

}  // namespace

// Parts of 41, 21, 9 and 6 steps, which begin in the middle of a chunk of channels and of a row of
// taps.
BOOST_AUTO_TEST_CASE(every_shape_and_every_split) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  for (const Arithmetic& arithmetic : whole)
    for (const ConvolutionPass pass : passes) {
      if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // takes the same paths as f16
      if (arithmetic.type == KILN_DATA_FLOAT && pass == ConvolutionPass::fprop) continue;
      const ConvolutionProblem problem = nhwc("mb2ic136ih9iw10oc72kh3ph1", arithmetic, pass);
      const OperationCase item = integers_of(problem);
      const HostTensor want = item.expected();
      const std::vector<HaloWgmmaTile> tiles = engine.tiles(problem, device()->description());
      BOOST_TEST(tiles.size() >= 12);
      for (std::size_t i = 0; i < tiles.size(); ++i) {
        const HaloWgmmaTile& tile = tiles[i];
        // The filter is read in place, transposed, or copied in words. Data gradients of f32 and of
        // 16 bits share the tiles between them.
        const bool words = arithmetic.type == KILN_DATA_FLOAT;
        if (pass == ConvolutionPass::dgrad && i % 2 != (words ? 1 : 0)) continue;
        for (const int parts : {1, 2, 5, 8}) {
          if ((tile.shape.strips && parts > 2) ||
              !share.takes(describe(tile), text_of(arithmetic), pass, parts))
            continue;
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
                                    "g2mb2ic32ih33iw17oc48kh2kw3pw2dh1"},
                                   KILN_TENSOR_NHWC, whole);
  BOOST_TEST(checked >= 15);
}

// Sizes that no tile divides; padding smaller than the filter, as large, larger, and on one side
// only; dilations, groups, flipped filters; images of one pixel; rows longer than a tile; filters
// of one tap, two taps, one row and one column, which have up to seven halos in flight.
BOOST_AUTO_TEST_CASE(edges) {
  if (!has_warpgroups()) return;
  int turn = 0;
  for (const char* line :
       {"mb3_ic40ih9iw7_oc24_kh3kw3_ph1pw1", "mb3_ic48ih11iw13_oc40_kh1kw3_ph0pw1",
        "mb2_ic48ih15iw11_oc56_kh3kw1", "g2mb5_ic128ih6iw6_oc64_kh2kw3_ph1pw2_dh1dw1",
        "mb1_ic32ih15iw31_oc48_kh5kw5_ph2pw2", "mb20_ic16ih3iw3_oc40_kh3kw3_ph1pw1",
        "mb1_ic16ih17iw18_oc24_kh9kw9_ph8pw8", "mb1_ic16ih5iw70_oc24_kh4kw3_ph3pw1_dh1dw2",
        "mb300_ic136ih1iw1_oc72_kh1kw1", "mb7_ic200ih5iw4_oc136_kh1kw1",
        "mb3_ic72ih6iw5_oc48_kh2kw1", "mb2_ic72_ih25iw25_oc24_kh4kw4_dh2dw2",
        "mb2_ic16ih9iw300_oc24_kh2kw3_ph1pw0", "mb4_ic24ih7iw7_oc24_kh3kw3_ph4pw5",
        "mb2_ic24ih10iw9_oc32_oh10ow9_kh2kw2_ph0pw0", "mb2_ic32ih2iw3_oc32_kh3kw3_ph2pw2",
        "g3mb2_ic72ih7iw11_oc48_kh3kw4_pw2"})
    for (const ConvolutionPass pass : passes) {
      const kilnConvolutionMode_t mode = turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION;
      const Arithmetic& arithmetic = whole[static_cast<std::size_t>(turn++ / 2) % whole.size()];
      const ConvolutionProblem problem = nhwc(line, arithmetic, pass, mode);
      BOOST_TEST(reason(problem) == "", line);
      check_exact(integers_of(problem));
    }
}

// Strides of rows and pixels that leave gaps.
BOOST_AUTO_TEST_CASE(strides) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : whole) {
    const ConvolutionOperands o =
        describe_convolution(parse_convolution_line("mb3ic24ih9iw14oc40kh3ph1"), arithmetic.type,
                             KILN_TENSOR_NHWC, KILN_CROSS_CORRELATION);
    Tensor x = o.x, y = o.y;
    x.strides = {6400, 1, 640, 40};
    y.strides = {13000, 2, 1400, 99};
    ConvolutionProblem problem = make_convolution(o.spec, x, o.w, y);
    problem.math = arithmetic.math;
    check_exact(integers_of(problem));
  }
}

// Sums so long that they are promoted, through local memory.
BOOST_AUTO_TEST_CASE(long_sums) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : whole) {
    check_exact(integers_of(nhwc("mb1_ic2784ih4iw5_oc24_kh3kw3", arithmetic)));
    check_exact(
        integers_of(nhwc("mb1_ic24ih4iw5_oc2784_kh3kw3", arithmetic, ConvolutionPass::dgrad)));
  }
}

BOOST_AUTO_TEST_CASE(epilogue_and_alignment) {
  if (!has_warpgroups()) return;
  check_epilogues(engine, KILN_TENSOR_NHWC, false, whole);
  for (const Arithmetic& arithmetic : whole) {
    ConvolutionProblem problem = nhwc("mb2ic24ih14iw15oc21kh3ph1", arithmetic);
    problem.alignment = static_cast<std::int64_t>(size_of(problem.type()));
    BOOST_TEST(reason(problem).ends_with("bytes; expected 16, which are copied at a time"));
  }
}

BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (has_warpgroups())
    check_nan_and_infinity(engine, KILN_TENSOR_NHWC,
                           {"mb2ic16ih8iw8oc24kh3ph0", "mb3ic16ih6iw9oc24kh3ph1"}, whole);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  const Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1", f16)) == "");
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1sh2sw2", f16)) == "a stride is 2; expected 1");
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1", {KILN_DATA_FLOAT, KILN_MATH_DEFAULT})) ==
             "f32 in default math; this engine takes f16, bf16 and tf32 math");
  BOOST_TEST(reason(problem_in("mb4ic32ih29oc64kh3ph1", f16, KILN_TENSOR_NCHW)) ==
             "the channels of x are not contiguous (stride 1), as channels-last layout has them");
  BOOST_TEST(reason(nhwc("mb1ic32ih900oc64kh3dh700ph700", f16)) ==
             "the halo of no tile fits into shared memory, or offsets into 32 bits");
  const auto answer =
      engine.candidates(nhwc("mb4ic32ih29oc64kh3ph1", f16), known_architecture("sm_100"));
  BOOST_TEST(std::get<Refusal>(answer).reason ==
             "sm_100 lacks the wgmma instructions, which sm_90a alone has");
}

BOOST_AUTO_TEST_SUITE_END()
