// Convolutions whose channels are no multiple of 16 bytes, computed on padded copies: either
// layout, all passes, chunks of images, and NaN and infinities beside the padding.
#include <cmath>
#include <limits>

#include "ops/conv/rewrite/rewrite_case.hpp"

BOOST_AUTO_TEST_SUITE(padded_copies)

namespace {

using namespace test;

constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT}, tf32{KILN_DATA_FLOAT, KILN_MATH_TF32};
constexpr kilnTensorFormat_t layouts[] = {KILN_TENSOR_NHWC, KILN_TENSOR_NCHW};

// Problems with a budget of workspace that has room for some images of 16 bits, and for only one or
// two of f32.
constexpr Layer layers[] = {
    {"mb5ic9ih7oc21kh3ph1", 24 << 10},
    {"mb3ic45ih13oc17kh3ph1", 120 << 10},
    {"mb7ic18ih10oc36kh1", 40 << 10},
    {"mb3ic230ih6oc24kh1", 90 << 10},
    {"mb3ic24ih9oc45kh3ph1sh2", 110 << 10},
    {"mb3ic20ih9oc19kh1sh2", 20 << 10},
    {"mb4ic11iw101oc13kw5pw2", 40 << 10},
    {"mb3ic13id5ih6iw7oc10kd3kh1kw1pd1", 60 << 10},
    {"mb3ic10id4ih9iw8oc13kd1kh3kw3ph1pw1sd1sh2sw2", 60 << 10},
    {"mb3ic3ih16oc45kh3ph1", 120 << 10},
    {"mb5ic3ih16oc45kh3ph1", 64 << 10},
    {"mb2ic45ih12oc3kh1", 60 << 10},
    {"mb3ic7ih8oc12kh3ph2dh1", 40 << 10},
};

}  // namespace

// In every second case the result is scaled and added to its previous content.
BOOST_AUTO_TEST_CASE(layers_and_chunks) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  bool scaled = false;
  for (const Layer& layer : layers)
    for (const Arithmetic& arithmetic : arithmetics)
      for (const kilnTensorFormat_t layout : layouts)
        for (const ConvolutionPass pass : all_passes) {
          if (!share.takes(layer.line, text_of(arithmetic), layout, pass)) continue;
          OperationCase item = integers_of(problem_in(layer.line, arithmetic, layout, pass));
          if (scaled) {
            item.scalars = {.alpha = -2, .beta = 3};
            item.fill_integers(7, 2);
          }
          scaled = !scaled;
          check_copies(item, layer.budget);
        }
}

// x with channels first and y with channels last, and vice versa.
BOOST_AUTO_TEST_CASE(either_layout_of_either_tensor) {
  if (!has_warpgroups()) return;
  for (const ConvolutionPass pass : all_passes)
    for (const bool x_first : {false, true}) {
      const char* const line = "mb3ic18ih7oc21kh3ph1";
      ConvolutionProblem problem = problem_in(line, f16, KILN_TENSOR_NHWC, pass);
      const ConvolutionProblem other = problem_in(line, f16, KILN_TENSOR_NCHW, pass);
      (x_first ? problem.x_strides : problem.y_strides) =
          x_first ? other.x_strides : other.y_strides;
      check_copies(integers_of(problem), 40 << 10);
    }
}

// The copy of a bias has zeros for padded channels. A bias with one element for all channels is not
// copied.
BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (const kilnTensorFormat_t layout : layouts)
    for (const std::int64_t bias_stride : {0, 1, 3})
      for (const Arithmetic& arithmetic : {f16, tf32}) {
        if (!share.takes(layout, bias_stride, text_of(arithmetic))) continue;
        ConvolutionProblem problem = fused_in("mb3ic18ih7oc21kh3ph1", arithmetic, layout, layout);
        problem.bias_stride = bias_stride;
        OperationCase fused(problem);
        fused.scalars = {.alpha = 2, .beta = -1};
        fused.fill_integers(5, 2);
        check_copies(fused, 60 << 10);
      }
}

// Padded channels of one operand are multiplied only by padded channels of the other, so they add
// 0 * 0, whatever the other channels contain.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (const kilnTensorFormat_t layout : layouts)
    for (const ConvolutionPass pass : all_passes)
      for (const Arithmetic& arithmetic : {f16, tf32}) {
        if (!share.takes(layout, pass, text_of(arithmetic))) continue;
        OperationCase item =
            integers_of(problem_in("mb3ic11ih9oc13kh3ph1", arithmetic, layout, pass), 5);
        replace_zeros(item);
        for (std::size_t i = 0; i < 2; ++i) {
          item.tensors[i].at(20) = i == 0 ? infinity : std::nan("");
          item.tensors[i].at(item.tensors[i].values.size() - 1) = -infinity;
        }
        check_copies(item, 60 << 10);
      }
}

// Random numbers against sums in double precision. dw of 16 bits is the sum of several chunks.
BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (const kilnTensorFormat_t layout : layouts)
    for (const ConvolutionPass pass : all_passes) {
      if (!share.takes(layout, pass)) continue;
      OperationCase item(problem_in("mb5ic36ih11oc45kh3ph1", f16, layout, pass));
      item.fill_uniform(3);
      check_copies(item, 180 << 10, false);
    }
}

// If workspace is granted, a plan chooses the copies, because they are faster.
BOOST_AUTO_TEST_CASE(chosen_by_estimate) {
  const auto chosen = [](const char* line, ConvolutionPass pass, std::size_t workspace) {
    std::vector<EngineRefusal> refusals;
    return choose(problem_in(line, f16, KILN_TENSOR_NHWC, pass), known_architecture("h200"),
                  {.workspace = workspace}, refusals)
        .first()
        .kernel.tile;
  };
  const char* const line = "mb4ic64id16ih56iw56oc230od16oh28ow28kd1kh3kw3sd1sh2sw2pd0ph1pw1";
  BOOST_TEST(chosen(line, ConvolutionPass::fprop, most_workspace)
                 .starts_with("padded output for dense_nhwc_wgmma "));
  BOOST_TEST(chosen(line, ConvolutionPass::dgrad, most_workspace)
                 .starts_with("padded input for dense_nhwc_wgmma "));
  BOOST_TEST(chosen(line, ConvolutionPass::wgrad, most_workspace)
                 .starts_with("padded dy for wgrad_dense_nhwc_wgmma "));
  BOOST_TEST(!chosen(line, ConvolutionPass::fprop, 0).starts_with("padded"));
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  const auto reason = [](const ConvolutionProblem& problem, std::size_t budget) {
    const auto answer =
        engine_for(problem).propose(problem, chooser(), {.budget = budget, .copy_results = false});
    const auto* refusal = std::get_if<Refusal>(&answer);
    return refusal == nullptr ? std::string() : refusal->reason;
  };
  const ConvolutionProblem problem = problem_in("mb4ic9ih7oc13kh3ph1", f16, KILN_TENSOR_NHWC);
  // 16 filters of 9 taps of 16 channels, and rows of 7 pixels with 16 channels: three of x, one of
  // y.
  constexpr std::size_t needed = 2 * (16 * 9 * 16 + 4 * 7 * 16), margins = 4 * 256;
  BOOST_TEST(reason(problem, needed + margins) == "");
  BOOST_TEST(reason(problem, needed + margins - 1) ==
             cat("what is copied of a filter and of 1 row of an image has ", needed,
                 " bytes; expected at most the workspace, ", needed + margins - 1));
  ConvolutionProblem apart = problem;
  apart.x_strides[4] = 16;
  BOOST_TEST(
      reason(apart, most_workspace) ==
      "the width stride of x is 16; expected 9, as channels-last layout without gaps has it");
  // Groups are not padded, and neither are few channels, which other engines take.
  for (const char* line : {"g2mb4ic18ih7oc26kh3ph1", "mb4ic3ih7oc5kh3ph1"})
    BOOST_TEST(reason(problem_in(line, f16, KILN_TENSOR_NHWC), most_workspace) ==
               "the channels of x are contiguous already, and none are to be padded to a multiple "
               "of 16 bytes");
  ConvolutionProblem taps =
      problem_in("mb4ic9ih7oc13kh3ph1", f16, KILN_TENSOR_NHWC, ConvolutionPass::wgrad);
  std::swap(taps.w_strides[3], taps.w_strides[4]);
  const auto answer =
      gradients.propose(taps, chooser(), {.budget = most_workspace, .copy_results = true});
  BOOST_REQUIRE(std::holds_alternative<Refusal>(answer));
  BOOST_TEST(
      std::get<Refusal>(answer).reason ==
      "the depth, height and width strides of dw are not one stride times the taps inside, as in "
      "channels-first and channels-last layout");
}

BOOST_AUTO_TEST_SUITE_END()
