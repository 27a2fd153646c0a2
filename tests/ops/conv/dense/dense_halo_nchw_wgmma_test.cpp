// The dense engine for channels-first tensors and filters of several taps: every tile, patches that
// end within a plane, filters of many shapes, copied filters, the epilogue.
#include "engines/conv/dense/dense_halo_nchw_wgmma.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/dense/planar_source.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(dense_halo_nchw_wgmma)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::dense_halo_nchw_wgmma);
constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
constexpr Arithmetic bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT};

ConvolutionProblem nchw(const char* line, const Arithmetic& arithmetic = f16,
                        ConvolutionPass pass = ConvolutionPass::fprop,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NCHW, pass, mode);
}

void check_patch(const OperationCase& item, const PlanarPatch& patch, const HostTensor& want) {
  const Proposal proposal =
      engine.propose(patch, std::get<ConvolutionProblem>(item.problem), device()->description());
  const std::string fault = difference(run_proposal(item, proposal), want);
  BOOST_TEST(fault.empty(), text_of(item.problem)
                                << ", " << proposal.steps.back().kernel.tile << ": " << fault);
}

// Checks one of the tiles, which take turns from call to call.
void check(const OperationCase& item, std::size_t turn) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  const std::vector<PlanarPatch> patches = engine.tiles(problem, device()->description());
  BOOST_TEST_REQUIRE(!patches.empty(), text_of(item.problem));
  check_patch(item, patches[turn * 5 % patches.size()], item.expected());
}

}  // namespace

// Planes, channels and rows that end within a tile; every width of a patch. Lines of 64, 32 and 16
// pixels; columns that are loaded, or shifted; halos of a row of taps, and of one tap.
BOOST_AUTO_TEST_CASE(every_patch) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  for (const auto& [line, pass, arithmetic] :
       {std::tuple("mb2ic107ih9iw16oc37kh3ph1", ConvolutionPass::dgrad, f16),
        {"mb1ic24ih9iw32oc56kh3kw3ph1pw8dh0dw7", ConvolutionPass::fprop, bf16},
        {"mb1ic136ih5iw56oc104kh3ph1", ConvolutionPass::fprop, f16},
        {"mb1ic40ih5iw96oc40kh3ph1", ConvolutionPass::dgrad, bf16}}) {
    const ConvolutionProblem problem = nchw(line, arithmetic, pass);
    const OperationCase item = integers_of(problem);
    const HostTensor want = item.expected();
    for (const PlanarPatch& patch : engine.tiles(problem, device()->description()))
      if (share.takes(patch.right, patch.line, patch.halo_taps)) check_patch(item, patch, want);
  }
}

// Few and odd channels, filters of many shapes, dilation, padding on one side and beyond the
// source, valid convolutions.
BOOST_AUTO_TEST_CASE(edges) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0;
  for (const char* line :
       {"mb3ic25iw40oc42kw5pw2", "mb2ic24ih9iw16oh11ow24oc16kh3kw3ph1pw9", "mb3ic3ih9iw8oc24kh3ph1",
        "mb2ic37ih5iw24oc53kh3kw1ph1", "mb1ic72ih17iw16oc48kh5kw3ph2pw1",
        "mb2ic16ih1iw40oc40kh3ph1", "mb1ic16ih6iw32oc24kh4kw2ph3pw8dh1dw7",
        "mb1ic20ih20iw8oc12kh3ph7dh6", "mb1ic8ih8iw34ow32oc8kh1kw3"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const ConvolutionProblem problem =
          nchw(line, turn % 2 == 0 ? f16 : bf16, pass,
               turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION);
      ++turn;
      if (!refusal_of(engine, problem).empty()) continue;  // rows of 34 pixels
      if (share.takes(engine.name())) check(integers_of(problem), turn);
    }
  BOOST_TEST(turn == 18);
}

// Taps in depth alone, whose planes are rows; depths that end in padding; strides of depth and
// height.
BOOST_AUTO_TEST_CASE(three_dimensions) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0;
  for (const char* line :
       {"mb2ic72id3ih4iw16oc40kd3kh3kw3pd1ph1pw1", "mb1ic40id5ih4iw10oc24kd3kh1kw1pd1ph0pw0",
        "mb1ic24id2ih5iw24oc40kd1kh3kw3pd0ph1pw1", "mb1ic16id6ih5iw8oc24kd2kh1kw2pd2ph0pw0dd1",
        "mb2ic24id7ih2iw12oc16kd3kh1kw1sd2sh1sw1pd0ph0pw0",
        "mb1ic16id5ih9iw16oc24kd3kh3kw3sd2sh2sw1pd1ph1pw1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const ConvolutionProblem problem =
          nchw(line, turn % 2 == 0 ? f16 : bf16, pass,
               turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION);
      ++turn;
      if (!refusal_of(engine, problem).empty()) continue;  // data gradients with strides
      if (!share.takes(problem.filter[1])) continue;
      OperationCase item = integers_of(problem);
      if (turn % 4 > 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check(item, turn);
    }
}

// alpha, beta, bias, activation; beta scales a residual or the previous output.
BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0;
  for (const Arithmetic& arithmetic : {f16, bf16})
    for (const char* line : {"mb2ic24ih6iw24oc40kh3ph1", "mb1ic40ih5iw64oc72kh3ph1"})
      for (const bool fuses : {true, false}) {
        OperationCase item =
            fuses ? OperationCase(fused_in(line, arithmetic, KILN_TENSOR_NCHW, KILN_TENSOR_NCHW))
                  : OperationCase(nchw(line, arithmetic, ConvolutionPass::dgrad));
        item.scalars = {.alpha = fuses ? 2. : -2., .beta = fuses ? -1. : 3.};
        item.fill_integers(5, 2);
        if (share.takes(engine.name())) check(item, turn);
        ++turn;
      }
}

// NaN and infinities reach the outputs that read them, and no others. What lies between the rows of
// x, too, is NaN.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  ConvolutionProblem problem = nchw("mb2ic20ih6iw24oc24kh3ph1");
  problem.x_strides = {20 * 6 * 40, 6 * 40, 0, 40, 1};
  OperationCase item = integers_of(problem, 5);
  const auto at = [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) -> double& {
    return item["x"].values[static_cast<std::size_t>(((n * 20 + c) * 6 + h) * 40 + w)];
  };
  at(0, 3, 2, 0) = at(1, 17, 4, 23) = std::nan("");
  at(1, 0, 0, 23) = std::numeric_limits<double>::infinity();
  replace_zeros(item);
  check(item, 0);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  const auto reason = [](const char* line, ConvolutionPass pass = ConvolutionPass::fprop) {
    return refusal_of(engine, nchw(line, f16, pass));
  };
  BOOST_TEST(reason("mb4ic32ih32oc64kh3ph1") == "");
  BOOST_TEST(reason("mb4ic32ih28oc64kh3ph1") ==
             "the height stride of x is 28; expected a multiple of 8, for copies of 16 bytes");
  BOOST_TEST(reason("mb4ic32ih32oc64kh3ph1sh2sw2") == "the width's stride is 2; expected 1");
  BOOST_TEST(reason("mb4ic32ih32oc64kh3ph1sh2sw2", ConvolutionPass::dgrad) ==
             "a data gradient with a stride; this engine takes stride 1");
  BOOST_TEST(reason("mb4ic32ih32oc64kh1") == "the filter has one tap; expected several");
  BOOST_TEST(reason("mb4ic32ih32oc64kh3kw2ph1pw4dh0dw7") ==
             "the columns of the filter read the source at distances of -4 to 4 pixels; expected "
             "one at a multiple of 8, and the others at most 8 from it, because copies begin at "
             "multiples of 16 bytes");
  BOOST_TEST(reason("g2mb4ic32ih32oc64kh3ph1") == "2 groups; expected one");
  BOOST_TEST(reason("mb1ic1024ih32oc1024kh3ph1") ==
             "the copied filter has 18874368 bytes; expected at most the largest workspace, "
             "16777216");
  BOOST_TEST(reason("mb1ic2048ih32oc64kh3ph1") ==
             "each output is a sum of 18432 products; expected at most 16384, because the tensor "
             "cores round sums toward zero");
}

BOOST_AUTO_TEST_SUITE_END()
