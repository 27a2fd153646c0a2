// The engines of small groups of channels-last tensors: every size of a group, tails of pixels and
// channels, strides in both directions, dilation, flipped filters, the epilogue, and numbers that
// are not finite, which stay in their group.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/grouped/grouped_nhwc_mma.hpp"
#include "tensor_core_case.hpp"

namespace {

using namespace test;

const GroupedNhwcEngine engine;

constexpr DataType half_types[] = {KILN_DATA_HALF, KILN_DATA_BFLOAT16};

ConvolutionProblem nhwc(const char* line, DataType type,
                        ConvolutionPass pass = ConvolutionPass::fprop,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, {type, KILN_MATH_DEFAULT}, KILN_TENSOR_NHWC, pass, mode);
}

std::string reason(const ConvolutionProblem& problem) {
  const auto answer = engine.candidates(problem, device()->description());
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? std::string() : refusal->reason;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(grouped_nhwc)

// Blocks of 32 and of 64 channels, and channels that end within one; pixels of several tiles and
// fewer than a warp's; one tap, rows and columns of them, more than a step covers and more than are
// unrolled; phases of a data gradient, some without taps.
BOOST_AUTO_TEST_CASE(shapes) {
  std::size_t turn = 0;
  for (const char* line :
       {"g4mb2ic8ih9iw11oc8kh3ph1", "g20mb1ic40ih17iw18oc40kh3ph1", "g8mb3ic32ih7iw5oc32kh5ph2",
        "g18mb1ic72ih5iw26oc72kh3ph1", "g5mb2ic40ih13iw8oc40kh3ph1sh2sw2",
        "g12mb1ic96ih12iw9oc96kh5ph2sh2sw3", "g3mb1ic48ih9iw9oc48kh2sh4sw4",
        "g4mb2ic64ih15oc64kh7ph3", "g8mb1ic32ih14iw13oc32kh3ph2dh1dw1", "g2mb40ic32ih1iw1oc32kh1",
        "g32mb1ic64ih1iw150oc64kh1kw9pw4", "g4mb3ic64ih14oc64kh3ph1sh2", "g9mb1ic72ih6oc72kh1sh3",
        "g16mb1ic32ih10iw9oc32kh4kw5ph1pw2sh2sw1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item =
          integers_of(nhwc(line, half_types[turn % std::size(half_types)], pass,
                           turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
      if (turn % 4 > 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check_integers(item, engine.name());
      ++turn;
    }
}

BOOST_AUTO_TEST_CASE(random_numbers_and_an_epilogue) {
  for (DataType type : half_types)
    for (const char* line : {"g20mb2ic40ih9iw7oc40kh3ph1", "g10mb2ic40ih9iw7oc40kh3ph1",
                             "g5mb2ic40ih9iw7oc40kh3ph1", "g3mb2ic48ih9iw7oc48kh3ph1"}) {
      OperationCase item(
          fused_in(line, {type, KILN_MATH_DEFAULT}, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
      item.fill_uniform(3);
      item.scalars = {.alpha = 0.5, .beta = 0.75};
      const std::string fault = test::check(item, engine.name());
      BOOST_TEST(fault.empty(), fault);
    }
}

// What is not a number stays in its group, and in the pixels that meet it.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  for (const char* line : {"g16mb2ic32ih6iw9oc32kh3ph1", "g8mb2ic32ih6iw9oc32kh3ph1",
                           "g4mb2ic32ih6iw9oc32kh3ph1", "g2mb2ic32ih6iw9oc32kh3ph1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad})
      for (const bool in_filter : {false, true}) {
        OperationCase item = integers_of(nhwc(line, KILN_DATA_HALF, pass), 5);
        for (int i = 0; i < 2; ++i)
          for (double& value : item.tensors[i].values) value = value == 0 ? 1 : value;
        HostTensor& tensor = item[in_filter ? "w" : pass == ConvolutionPass::fprop ? "x" : "dy"];
        const auto size = static_cast<std::int64_t>(tensor.values.size());
        tensor.at(size / 3) = std::nan("");
        tensor.at(size / 2 + 5) = std::numeric_limits<double>::infinity();
        check_integers(item, engine.name());
      }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(reason(nhwc("g8mb4ic32ih9oc32kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(reason(nhwc("g8mb4ic32ih9oc32kh3ph1", KILN_DATA_FLOAT)) ==
             "elements of more than 16 bits; this engine takes f16 and bf16");
  BOOST_TEST(reason(nhwc("g8mb4ic32ih9oc64kh3ph1", KILN_DATA_HALF)) ==
             "groups of 4 input and 8 output channels; this engine takes 2, 4, 8 or 16 of both");
  BOOST_TEST(reason(nhwc("g3mb4ic12ih9oc12kh3ph1", KILN_DATA_HALF)) ==
             "12 channels; expected a multiple of 8");
}

BOOST_AUTO_TEST_SUITE_END()
