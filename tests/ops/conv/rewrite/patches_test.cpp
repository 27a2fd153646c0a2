// Convolutions whose filters meet every pixel once, computed as if a row of a patch were one pixel:
// all passes and types, patches of one row and of more rows than a kernel has phases, tensors with
// gaps, and what is refused.
#include "engines/rewrite/patches.hpp"

#include <boost/test/unit_test.hpp>

#include "ops/conv/rewrite/rewrite_case.hpp"

BOOST_AUTO_TEST_SUITE(patches)

namespace {

using namespace test;

const PatchesNhwc passes;
const WgradPatchesNhwc filters;

constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT},
    bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT}, tf32{KILN_DATA_FLOAT, KILN_MATH_TF32},
    f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
constexpr Arithmetic in_turns[] = {f16, tf32, bf16, f32};

const Patches& engine_of(const ConvolutionProblem& problem) {
  if (problem.pass == ConvolutionPass::wgrad) return filters;
  return passes;
}

ConvolutionProblem nhwc(const char* line, const Arithmetic& arithmetic = f16,
                        ConvolutionPass pass = ConvolutionPass::fprop,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NHWC, pass, mode);
}

// The image's rows and pixels are followed by gaps, as in a view of a larger image.
ConvolutionProblem with_gaps(ConvolutionProblem problem) {
  problem.x_strides[3] += 16;
  problem.x_strides[0] = problem.x_strides[3] * problem.in[1] + 32;
  return problem;
}

std::string reason(const ConvolutionProblem& problem) {
  return refusal_of(engine_of(problem), problem);
}

}  // namespace

// With and without workspace; every second result is scaled and added to its previous content.
BOOST_AUTO_TEST_CASE(all_passes_and_types) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line : {"mb3ic3ih48iw32oc40kh16sh16", "mb2ic1ih24iw40oc24kh8sh8",
                           "mb2ic3ih22iw48oc16kh11kw16sh11sw16", "mb5ic2ih1iw32oc24kh1kw8sh1sw8",
                           "mb1ic3ih16oc136kh16sh16", "mb2ic6ih6iw40oc72kh2kw4sh2sw4",
                           "mb2ic3ih28oc40kh14sh14", "mb3ic3ih14iw42oc24kh14sh14",
                           "mb3ic3ih18iw36oc40kh6sh6", "mb2ic16ih22iw3oc24kh11kw1sh11sw1"})
    for (const ConvolutionPass pass : all_passes) {
      const Arithmetic& arithmetic = in_turns[turn % std::size(in_turns)];
      ConvolutionProblem problem = nhwc(line, arithmetic, pass);
      if (turn % 3 == 0) problem = with_gaps(problem);
      OperationCase item = integers_of(problem);
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      for (const std::size_t budget : {std::size_t{0}, most_workspace}) {
        const auto answer = engine_of(problem).propose(problem, chooser(),
                                                       {.budget = budget, .copy_results = false});
        const auto* refusal = std::get_if<Refusal>(&answer);
        BOOST_TEST_REQUIRE((refusal == nullptr), text_of(item.problem)
                                                     << ": " << (refusal ? refusal->reason : ""));
        const Proposal& proposal = std::get<RelayoutRewrite::Result>(answer).proposal;
        BOOST_TEST(proposal.workspace <= budget);
        const std::string fault = item.exact_fault(run_proposal(item, proposal));
        BOOST_TEST(fault.empty(), text_of(item.problem)
                                      << ", " << proposal.first().kernel.tile << ": " << fault);
      }
      ++turn;
    }
}

BOOST_AUTO_TEST_CASE(random_numbers_and_an_epilogue) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : in_turns) {
    OperationCase item(
        fused_in("mb2ic3ih32iw48oc24kh16sh16", arithmetic, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
    item.scalars = {.alpha = 0.5, .beta = 0.75};
    item.fill_uniform(3);
    const std::string fault = check(item, passes.name());
    BOOST_TEST(fault.empty(), fault);
  }
}

// More than a kernel's phases of rows are several steps.
BOOST_AUTO_TEST_CASE(rows_of_a_data_gradient_are_divided) {
  const auto steps = [](const char* line) {
    const auto answer = passes.propose(nhwc(line, f16, ConvolutionPass::dgrad), chooser(),
                                       {.budget = 0, .copy_results = false});
    return std::get<RelayoutRewrite::Result>(answer).proposal.steps.size();
  };
  BOOST_TEST(steps("mb2ic3ih32oc40kh8kw16sh8sw16") == 1U);
  BOOST_TEST(steps("mb2ic3ih32oc40kh16sh16") == 2U);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason(nhwc("mb2ic3ih32oc40kh16sh16")) == "");
  const std::string no_patches =
      "filters overlap, reach over the edge or leave pixels out; this engine takes patches";
  for (const char* line : {"mb2ic3ih32oc40kh16sh8", "mb2ic3ih32oc40kh16sh16ph8pw8",
                           "mb2ic3ih33oc40kh16sh16", "mb2ic3ih32oc40kh15sh16"})
    BOOST_TEST(reason(nhwc(line)) == no_patches, line);
  BOOST_TEST(reason(nhwc("g3mb2ic3ih32oc48kh16sh16")) == "3 groups; this engine takes one");
  BOOST_TEST(reason(nhwc("mb2ic3id4ih32oc40kd4kh16sd4sh16")) ==
             "three dimensions of space; this engine takes two");
  BOOST_TEST(reason(nhwc("mb2ic3ih32oc40kh2sh2")) ==
             "6 channels in a row of a patch; expected at least 8");
  BOOST_TEST(reason(nhwc("mb2ic9ih33iw8oc40kh11kw1sh11sw1")) ==
             "9 channels of a pixel; expected a multiple of 8");
  BOOST_TEST(reason(nhwc("mb2ic16ih32iw8oc40kh4kw1sh4sw1")) ==
             "the filter has one column and a stride of 4; other engines take it as it lies");
  BOOST_TEST(reason(nhwc("mb2ic16ih32oc40kh2sh2")) ==
             "16 channels are a multiple of 8; other engines take them as they lie");
  BOOST_TEST(reason(nhwc("mb2ic3ih32oc40kh16sh16", f16, ConvolutionPass::fprop,
                         KILN_CONVOLUTION)) == "a flipped filter; this engine takes none");
  BOOST_TEST(reason(problem_in("mb2ic3ih32oc40kh16sh16", f16, KILN_TENSOR_NCHW)) ==
             "channels and columns of x do not follow each other, channels innermost");
}

BOOST_AUTO_TEST_SUITE_END()
