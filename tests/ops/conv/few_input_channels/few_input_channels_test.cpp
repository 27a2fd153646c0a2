// The engines for sources with few channels: every shape, blocks that compute one band and many,
// padding of runs and fragments, and the epilogue.
#include "engines/conv/few_input_channels/few_input_channels.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"
#include "ops/placed_case.hpp"

BOOST_AUTO_TEST_SUITE(few_input_channels)

namespace {

using namespace test;

constexpr kilnTensorFormat_t layouts[] = {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC};

const RecipeEngine by_warps(few_input_channels_mma);
const RecipeEngine by_warpgroups(few_input_channels_wgmma_swap);

// The engines that the device supports.
std::vector<const RecipeEngine<FewInputChannelsTile>*> both() {
  std::vector<const RecipeEngine<FewInputChannelsTile>*> all = {&by_warps};
  if (has_warpgroups()) all.push_back(&by_warpgroups);
  return all;
}

void check_exact(const OperationCase& item) {
  for (const auto* each : both()) check_integers(item, each->name());
}

}  // namespace

// On a chip with a single multiprocessor, blocks compute several bands each, and the last block
// fewer.
BOOST_AUTO_TEST_CASE(every_shape_and_every_share) {
  DeviceDescription description = device()->description();
  kiln_test::ShareOfCases share = share_of_cases();
  for (const Arithmetic& arithmetic : arithmetics)
    for (const kilnTensorFormat_t layout : layouts) {
      if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // takes the same paths as f16
      const ConvolutionProblem problem = problem_in("mb7ic3ih19iw22oc72kh7ph3", arithmetic, layout);
      const OperationCase item = integers_of(problem);
      const HostTensor want = item.expected();
      for (const auto* each : both()) {
        const std::vector<FewInputChannelsTile> tiles = each->tiles(problem, description);
        BOOST_TEST(tiles.size() >= 4);
        for (const FewInputChannelsTile& tile : tiles)
          for (const int multiprocessors : {132, 1}) {
            if (!share.takes(cat(each->name(), " ", describe(tile)), text_of(arithmetic), layout,
                             multiprocessors))
              continue;
            description.multiprocessors = multiprocessors;
            const Proposal proposal = each->propose(tile, problem, description);
            const std::string fault = difference(run_proposal(item, proposal), want);
            BOOST_TEST(fault.empty(), each->name() << ", " << describe(tile) << ", "
                                                   << proposal.first().launch.shape.grid[0]
                                                   << " blocks: " << fault);
          }
      }
    }
}

// Runs of odd lengths, strides, dilated rows, padding as large as the filter, images smaller and
// larger than a band, filters of one tap, one row and one column, groups, one channel and many.
BOOST_AUTO_TEST_CASE(edges) {
  kiln_test::ShareOfCases share = share_of_cases();
  int turn = 0, checked = 0;
  for (const char* line :
       {"mb2_ic3ih12iw48_oc40_kh7kw7_ph3pw3_sh2sw2", "mb2_ic3ih9iw256_oc24_kh5kw5_ph2pw2",
        "mb1_ic2ih3iw2400_oc16_kh2kw7_pw1", "mb2_ic3ih23iw21_oc40_kh7kw7_ph3pw3_sh2sw2",
        "mb1_ic1ih30iw17_oc24_kh12kw11", "mb3_ic5ih9iw31_oc50_kh5kw6_ph5pw5",
        "mb2_ic4ih17iw18_oc33_kh6kw6_ph2pw3_sh4sw3", "mb2_ic2ih25iw9_oc16_kh9kw9_ph4pw4_dh1",
        "mb1_ic3ih5iw300_oc20_kh3kw15_ph1pw7", "mb5_ic130ih3iw5_oc17_kh1kw1",
        "mb2_ic43ih5iw7_oc64_kh1kw3_ph0pw1", "mb2_ic48ih7iw1_oc32_kh3kw1_ph1",
        "mb2_ic48ih7iw9_oc32_kh3kw1_ph1_dh1dw1", "mb2_ic64ih9iw17_oc40_kh1kw1_sh2sw2",
        "mb2_ic7ih9iw1_oc20_kh5kw3_ph2pw1", "g3mb2_ic9ih12iw13_oc60_kh7kw7_ph3pw3"})
    for (const kilnTensorFormat_t layout : layouts)
      for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION})
        for (int i = 0; i < 2; ++i) {
          const Arithmetic& arithmetic = arithmetics[static_cast<std::size_t>(turn++) % 4];
          const ConvolutionProblem problem =
              problem_in(line, arithmetic, layout, ConvolutionPass::fprop, mode);
          // 3xTF32 needs longer sums, and NHWC needs all channels in one group.
          const bool few = is_split(problem) && problem.group_in() * problem.taps() < 128;
          if (few || (problem.groups > 1 && layout == KILN_TENSOR_NHWC)) {
            for (const auto* each : both())
              BOOST_CHECK_THROW(integers_of(problem).run_plan(each->name()), Error);
            continue;
          }
          ++checked;
          if (share.takes(line, layout, mode, text_of(arithmetic)))
            check_exact(integers_of(problem));
        }
  BOOST_TEST(checked == 116);
}

// The data gradient of a layer with few filters.
BOOST_AUTO_TEST_CASE(data_gradient) {
  for (const Arithmetic& arithmetic : arithmetics)
    for (const kilnTensorFormat_t layout : layouts)
      for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION})
        check_exact(integers_of(problem_in("mb2ic40ih13iw11oc6kh5ph1", arithmetic, layout,
                                           ConvolutionPass::dgrad, mode)));
}

// If the only phase of a strided gradient has no tap, every engine's result is zeros.
BOOST_AUTO_TEST_CASE(gradient_without_taps) {
  for (const Arithmetic& arithmetic : arithmetics)
    for (const kilnTensorFormat_t layout : layouts) {
      const ConvolutionProblem problem = problem_in("mb2_ic32ih1iw8_oc32_kh2kw1_sh2_ph1_dh1",
                                                    arithmetic, layout, ConvolutionPass::dgrad);
      const OperationCase item = integers_of(problem);
      BOOST_TEST(difference(item.run_plan(), item.expected()) == "");
      for (const auto* each : both()) BOOST_CHECK_THROW(item.run_plan(each->name()), Error);
    }
}

// Operands that are only aligned to an element, and a residual in another layout.
BOOST_AUTO_TEST_CASE(epilogue_and_alignment) {
  for (const Arithmetic& arithmetic : arithmetics)
    for (const kilnTensorFormat_t layout : layouts) {
      ConvolutionProblem problem =
          fused_in("mb2ic3ih14iw15oc40kh7ph3", arithmetic, layout, layouts[layout == layouts[0]]);
      problem.alignment = static_cast<std::int64_t>(size_of(problem.type()));
      OperationCase item = integers_of(problem);
      item.scalars = {.alpha = 2, .beta = -1};
      check_exact(item);
      for (const auto* each : both())
        BOOST_TEST(difference(run_shifted(item, 1, each->name()), item.expected()) == "");
    }
}

// An infinity is multiplied by lo parts that are zero, and by the padding of runs, which are pixels
// after the last tap of a row. It must reach only the outputs that read it.
BOOST_AUTO_TEST_CASE(nan_and_infinity_go_where_they_are_read) {
  for (const char* line : {"mb2ic3ih12iw13oc24kh7ph0", "mb2ic6ih10iw11oc24kh5ph0"})
    for (const Arithmetic& arithmetic : arithmetics)
      for (const kilnTensorFormat_t layout : layouts) {
        OperationCase item = integers_of(problem_in(line, arithmetic, layout), 5);
        replace_zeros(item);
        item["x"].at(20) = std::nan("");
        item["x"].at(101) = std::numeric_limits<double>::infinity();
        item["x"].at(333) = -std::numeric_limits<double>::infinity();
        item["w"].at(205) = std::numeric_limits<double>::infinity();
        check_exact(item);
      }
}

BOOST_AUTO_TEST_CASE(three_products_err_no_more_than_f32) {
  for (const auto* each : both())
    check_error_of_three_products(each->name(),
                                  {.channels = 3, .size = 20, .filters = 16, .taps = 11});
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  const auto reason = [&](const ConvolutionProblem& problem) {
    return refusal_of(by_warps, problem);
  };
  const Arithmetic f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
  const auto nchw = [&](const char* line) { return problem_in(line, f32, KILN_TENSOR_NCHW); };
  BOOST_TEST(reason(nchw("mb4ic3ih29oc32kh7ph1")) == "");
  BOOST_TEST(
      reason(nchw("mb4ic3ih29oc8kh7ph1")) ==
      "8 output channels a group; with fewer than 16 most of this engine's work would be idle");
  BOOST_TEST(reason(nchw("mb4ic3ih29oc32kh7ph1dw1dh1")) == "the filter is dilated along the width");
  BOOST_TEST(reason(nchw("mb4ic3id5ih29oc32kd3kh7ph1")) ==
             "three dimensions of space; this engine takes one and two");
  BOOST_TEST(reason(nchw("mb4ic512ih29oc32kh7ph1")).find("do not fit into shared memory") !=
             std::string::npos);
  // Sizes in bytes beyond 32 bits.
  BOOST_TEST(reason(nchw("mb1ic9000000ih8oc32kh7ph1")).find("do not fit into shared memory") !=
             std::string::npos);
  BOOST_TEST(
      reason(problem_in("g2mb4ic6ih29oc32kh7ph1", f32, KILN_TENSOR_NHWC)) ==
      "in the input neither the pixels of a row are contiguous, nor the channels of all pixels");
}

BOOST_AUTO_TEST_SUITE_END()
