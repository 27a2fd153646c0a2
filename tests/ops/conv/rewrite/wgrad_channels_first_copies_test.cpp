// Filter gradients of channels-last f32 depthwise layers that are computed on channels-first
// copies: planes of any size, chunks of images, random numbers, infinities, and what is refused.
#include "engines/rewrite/wgrad_channels_first_copies.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "ops/conv/rewrite/rewrite_case.hpp"

BOOST_AUTO_TEST_SUITE(wgrad_channels_first_copies)

namespace {

using namespace test;

const WgradChannelsFirstCopies engine;

constexpr Arithmetic f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT},
    f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};

ConvolutionProblem nhwc(const char* line, ConvolutionPass pass = ConvolutionPass::wgrad,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, f32, KILN_TENSOR_NHWC, pass, mode);
}

void check_copies_first(const OperationCase& item, std::size_t budget) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  const auto answer = engine.propose(problem, chooser(), {.budget = budget, .copy_results = false});
  const auto* refusal = std::get_if<Refusal>(&answer);
  BOOST_TEST_REQUIRE((refusal == nullptr), text_of(item.problem)
                                               << ": " << (refusal ? refusal->reason : ""));
  const Proposal& proposal = std::get<RelayoutRewrite::Result>(answer).proposal;
  BOOST_TEST(proposal.workspace <= budget);
  const std::string fault = item.exact_fault(run_proposal(item, proposal));
  BOOST_TEST(fault.empty(), text_of(item.problem) << ", " << proposal.first().kernel.tile << ", "
                                                  << proposal.steps.size() << " steps: " << fault);
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

}  // namespace

// Odd planes, strides and dilation, lines, and volumes, in one chunk and in several; every second
// result is scaled and added to its previous content.
BOOST_AUTO_TEST_CASE(planes_and_chunks) {
  std::size_t turn = 0;
  for (const Layer& layer : {Layer{"g20mb3ic20ih13iw14oc20kh9ph4", 40 << 10},
                             {"g7mb5ic7ih7oc7kh5ph2sh2", 4 << 10},
                             {"g68mb2ic68iw101oc68kw31pw15", std::size_t{16} << 20},
                             {"g12mb3ic12ih9iw11oc12kh3ph2dh1dw1", 20 << 10},
                             {"g9mb2ic9id5ih6iw7oc9kd3kh3kw3pd1ph1pw1", 20 << 10}})
    for (const kilnConvolutionMode_t mode : {KILN_CONVOLUTION, KILN_CROSS_CORRELATION}) {
      OperationCase item = integers_of(nhwc(layer.line, ConvolutionPass::wgrad, mode));
      if (turn++ % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check_copies_first(item, layer.budget);
    }
}

BOOST_AUTO_TEST_CASE(random_numbers) {
  OperationCase item(nhwc("g12mb3ic12ih9iw11oc12kh7ph3"));
  item.scalars = {.alpha = 0.5, .beta = 0.75};
  item.fill_uniform(3);
  FinalizeOptions options{.grant = {.only_engine = engine.name(), .workspace = most_workspace}};
  const std::string fault = item.fault(item.run_plan(options));
  BOOST_TEST(fault.empty(), fault);
}

// NaN and infinities stay in their channel, and in the outputs whose taps read them.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  OperationCase item = integers_of(nhwc("g10mb2ic10ih7iw9oc10kh5ph2"), 5);
  const auto size = static_cast<std::int64_t>(item.tensors[0].values.size());
  item.tensors[0].at(size / 3) = std::nan("");
  item.tensors[0].at(size / 2 + 5) = std::numeric_limits<double>::infinity();
  check_copies_first(item, std::size_t{1} << 20);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason(nhwc("g10mb2ic10ih7iw9oc10kh5ph2")) == "");
  BOOST_TEST(reason(problem_in("g10mb2ic10ih7iw9oc10kh5ph2", f16, KILN_TENSOR_NHWC,
                               ConvolutionPass::wgrad)) ==
             "the data type is f16; this engine takes f32");
  BOOST_TEST(reason(problem_in("g10mb2ic10ih7iw9oc10kh5ph2", f32, KILN_TENSOR_NCHW,
                               ConvolutionPass::wgrad)) == "the channels of x are not contiguous");
  BOOST_TEST(
      reason(nhwc("g10mb2ic20ih7iw9oc20kh5ph2")) ==
      "2 input and 2 output channels in 10 groups; this engine takes one of each, in several "
      "groups");
}

BOOST_AUTO_TEST_SUITE_END()
