// The dense engine of channels-last tensors: every tile, tails on all sides, strides as maps and as
// phases, the epilogue through shared memory.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/dense/nhwc_wgmma.hpp"
#include "tensor_core_case.hpp"

namespace {

using namespace test;

const DenseNhwcWgmmaEngine engine;
constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
constexpr Arithmetic bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT};

ConvolutionProblem nhwc(const char* line, const Arithmetic& arithmetic = f16,
                        ConvolutionPass pass = ConvolutionPass::fprop,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NHWC, pass, mode);
}

std::string reason(const ConvolutionProblem& problem) {
  const auto answer = engine.candidates(problem, device()->description());
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? std::string() : refusal->reason;
}

void check_tile(const DenseTile& tile, const OperationCase& item, const HostTensor& want) {
  const Proposal proposal =
      engine.propose(tile, std::get<ConvolutionProblem>(item.problem), device()->description());
  const std::string fault = difference(run_proposal(item, proposal), want);
  BOOST_TEST(fault.empty(), text_of(item.problem) << ", " << describe(tile) << ": " << fault);
}

// By one tile of pixels on the left and one of filters there, which take turns.
void check(const OperationCase& item, std::size_t turn) {
  const HostTensor want = item.expected();
  const auto tiles = engine.tiles();
  constexpr std::size_t small[] = {6, 15, 4, 12, 2, 17};  // numbers of quick ones
  for (std::size_t i = 0; i < 2; ++i)
    check_tile(tiles[small[(2 * turn + i) % std::size(small)]], item, want);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dense_nhwc_wgmma)

// Pixels, channels and rows that end within a tile, more tiles than blocks.
BOOST_AUTO_TEST_CASE(every_tile) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
    const ConvolutionProblem problem =
        nhwc("mb2ic72ih13iw11oc136kh1kw3pw1", pass == ConvolutionPass::fprop ? f16 : bf16, pass);
    const OperationCase item = integers_of(problem);
    const HostTensor want = item.expected();
    for (const DenseTile& tile : engine.tiles())
      if (share.takes(describe(tile), pass)) check_tile(tile, item, want);
  }
}

// Padding smaller than the filter, as large, larger, on one side; dilations, flipped filters,
// images of one pixel, filters of one tap, row, column.
BOOST_AUTO_TEST_CASE(edges) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line : {"mb3ic40ih9iw7oc24kh3ph1", "mb2ic48ih5iw11oc56kh3kw1",
                           "mb1ic72ih7iw9oc48kh5kw3ph2pw2", "mb20ic16ih1iw1oc40kh3ph1",
                           "mb1ic16ih5iw30oc24kh4kw3ph3pw1dh1dw2", "mb70ic136ih1iw1oc72kh1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      check(integers_of(nhwc(line, turn % 2 == 0 ? f16 : bf16, pass,
                             turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION)),
            turn);
      ++turn;
    }
}

// Forward by the maps' steps; the data gradient as its phases, some of which meet no tap.
BOOST_AUTO_TEST_CASE(strides) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line : {"mb3ic40ih9iw8oc24kh3ph1sh2sw2", "mb2ic24ih9iw8oc40kh1sh2sw2",
                           "mb2ic16ih11iw12oc24kh5ph2sh2sw3", "mb1ic24ih8iw14oc16kh2sh2sw2",
                           "mb1ic16ih13iw9oc24kh3sh4sw1dh2"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item = integers_of(nhwc(line, turn % 2 == 0 ? bf16 : f16, pass));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check(item, turn++);
    }
}

// alpha, beta, bias, activation, a residual of its own or what the output held.
BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const Arithmetic& arithmetic : {f16, bf16}) {
    OperationCase fused(
        fused_in("mb2ic24ih14iw9oc40kh3ph1", arithmetic, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
    fused.scalars = {.alpha = 2, .beta = -1};
    fused.fill_integers(5, 2);
    check(fused, turn++);
    fused.scalars = {.alpha = 1, .beta = 0};
    check(fused, turn++);
    OperationCase accumulated(nhwc("mb2ic40ih14iw9oc24kh3ph1", arithmetic, ConvolutionPass::dgrad));
    accumulated.scalars = {.alpha = -2, .beta = 3};
    accumulated.fill_integers(7, 2);
    check(accumulated, turn++);
  }
}

// Sums so long that they are promoted, more than once.
BOOST_AUTO_TEST_CASE(long_sums) {
  if (!has_warpgroups()) return;
  check(integers_of(nhwc("mb1ic2056ih4iw5oc24kh3ph1")), 0);
  check(integers_of(nhwc("mb1ic24ih4iw5oc6000kh3ph1", bf16, ConvolutionPass::dgrad)), 2);
}

// What is not a number goes where it is read, and nowhere else: channels, pixels and filters beyond
// the end of a tensor are zeros.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  OperationCase item = integers_of(nhwc("mb3ic16ih6iw9oc24kh3ph1"), 5);
  item["x"].at(20) = std::nan("");
  item["x"].at(800) = std::numeric_limits<double>::infinity();
  item["x"].at(item["x"].values.size() - 1) = -std::numeric_limits<double>::infinity();
  for (const char* tensor : {"x", "w"})
    for (double& value : item[tensor].values) value = value == 0 ? 1 : value;
  check_integers(item, engine.name());
}

// Random numbers, against sums in double precision.
BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, bf16})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item(nhwc("mb2ic136ih7iw9oc72kh3ph1", arithmetic, pass));
      item.fill_uniform(3);
      const std::string fault = test::check(item, engine.name());
      BOOST_TEST(fault.empty(), fault);
    }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1")) == "");
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1", {KILN_DATA_FLOAT, KILN_MATH_TF32})) ==
             "the data type is f32; this engine takes f16 and bf16");
  BOOST_TEST(reason(problem_in("mb4ic32ih29oc64kh3ph1", f16, KILN_TENSOR_NCHW)) ==
             "the channels of x are not contiguous (stride 1), as channels-last layout has them");
  BOOST_TEST(reason(nhwc("mb4ic36ih29oc64kh3ph1")) ==
             "36 input channels; expected a multiple of 8");
  BOOST_TEST(reason(nhwc("g2mb4ic32ih29oc64kh3ph1")) == "2 groups; this engine takes one");
  const auto answer =
      engine.candidates(nhwc("mb4ic32ih29oc64kh3ph1"), known_architecture("sm_100"));
  BOOST_TEST(std::get<Refusal>(answer).reason ==
             "sm_100 lacks the wgmma instructions, which sm_90a alone has");
}

BOOST_AUTO_TEST_SUITE_END()
