// The dense engine with halos: every patch, images that end within a patch, filters of many shapes,
// the epilogue.
#include "engines/conv/dense/dense_halo_nhwc_wgmma.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(dense_halo_nhwc_wgmma)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::dense_halo_nhwc_wgmma);
constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
constexpr Arithmetic bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT};
constexpr Arithmetic tf32{KILN_DATA_FLOAT, KILN_MATH_TF32};

ConvolutionProblem nhwc(const char* line, const Arithmetic& arithmetic = f16,
                        ConvolutionPass pass = ConvolutionPass::fprop,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NHWC, pass, mode);
}

void check(const OperationCase& item, std::size_t patch) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  const std::vector<DensePatch> patches = engine.tiles(problem, device()->description());
  const Proposal proposal =
      engine.propose(patches.at(patch % patches.size()), problem, device()->description());
  const std::string fault = difference(run_proposal(item, proposal), item.expected());
  BOOST_TEST(fault.empty(), text_of(item.problem)
                                << ", " << proposal.first().kernel.tile << ": " << fault);
}

}  // namespace

// More tiles than a block has warpgroups, more chunks of channels than halos, more taps than
// stages.
BOOST_AUTO_TEST_CASE(every_patch) {
  if (!has_warpgroups()) return;
  for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
    const OperationCase item = integers_of(
        nhwc("mb2ic136ih29iw11oc72kh3ph1", pass == ConvolutionPass::fprop ? f16 : bf16, pass));
    for (std::size_t i = 0; i < 4; ++i) check(item, i);
  }
}

BOOST_AUTO_TEST_CASE(edges) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line : {"mb3ic40ih9iw7oc24kh3ph1", "mb2ic48ih5iw11oc56kh3kw1",
                           "mb1ic72ih17iw9oc48kh5kw3ph2pw2", "mb5ic16ih1iw1oc40kh3ph1",
                           "mb1ic16ih5iw30oc24kh4kw3ph3pw1dh1dw2", "mb2ic24ih9iw9oc16kh1kw2"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      check(integers_of(nhwc(line, turn % 2 == 0 ? f16 : bf16, pass,
                             turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION)),
            turn % 4 == 0 ? 0 : 3);
      ++turn;
    }
}

// Halos of several planes; padding after the source that differs from the padding before it.
BOOST_AUTO_TEST_CASE(three_dimensions_and_uneven_padding) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"mb2ic72id5ih4iw7oc72kd3kh3kw3pd1ph1pw1", "mb1ic16id6ih5iw9oc24kd2kh1kw2pd2ph0pw0dd1dh0dw2",
        "mb2ic24ih9iw7oh11ow6oc16kh3kw3ph1", "mb3ic16iw29ow33oc40kw5pw3"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item =
          integers_of(nhwc(line, turn % 2 == 0 ? f16 : bf16, pass,
                           turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check(item, turn++ % 4 == 0 ? 0 : 3);
    }
}

BOOST_AUTO_TEST_CASE(groups_and_tf32) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const auto& [line, arithmetic] : {std::pair("g2mb2ic128ih9iw7oc128kh3ph1", bf16),
                                         {"g3mb1ic384ih5iw9oc192kh1kw3pw1", f16},
                                         {"mb2ic36ih9iw7oc68kh3ph1", tf32},
                                         {"g2mb1ic128ih5iw9oc128kh3ph1", tf32},
                                         {"mb2ic20id4ih5iw6oc24kd2kh3kw3pd1ph1pw1", tf32}})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item = integers_of(
          nhwc(line, arithmetic, pass, turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check(item, turn++ % 4 == 0 ? 0 : 3);
    }
  OperationCase fused(
      fused_in("mb2ic24ih14iw9oc40kh3ph1", tf32, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
  fused.scalars = {.alpha = 2, .beta = -1};
  fused.fill_integers(5, 2);
  check(fused, 3);
}

BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, bf16}) {
    OperationCase fused(
        fused_in("mb2ic24ih14iw9oc40kh3ph1", arithmetic, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
    fused.scalars = {.alpha = 2, .beta = -1};
    fused.fill_integers(5, 2);
    check(fused, 3);
    OperationCase accumulated(nhwc("mb2ic40ih14iw9oc24kh3ph1", arithmetic, ConvolutionPass::dgrad));
    accumulated.scalars = {.alpha = -2, .beta = 3};
    accumulated.fill_integers(7, 2);
    check(accumulated, 3);
  }
}

// NaN and infinities reach the outputs that read them, and no others.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  OperationCase item = integers_of(nhwc("mb3ic16ih6iw9oc24kh3ph1"), 5);
  item["x"].at(20) = std::nan("");
  item["x"].at(800) = std::numeric_limits<double>::infinity();
  replace_zeros(item);
  check_integers(item, engine.name());
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  const auto reason = [](const char* line) { return refusal_of(engine, nhwc(line)); };
  BOOST_TEST(reason("mb4ic32ih29oc64kh3ph1") == "");
  BOOST_TEST(reason("g2mb4ic128ih29oc64kh3ph1") ==
             "32 output channels a group; expected a multiple of 64, so that a tile ends with a "
             "group");
  BOOST_TEST(reason("mb4ic32ih29oc64kh3ph1sh2sw2") == "a stride is 2; expected 1");
  BOOST_TEST(reason("mb4ic32ih29oc64kh1") ==
             "the filter has one tap of a plane, so no input would be reused");
  BOOST_TEST(reason("mb1ic32ih200oc64kh3dh99ph100") ==
             "the halo of no patch fits into shared memory");
}

BOOST_AUTO_TEST_SUITE_END()
