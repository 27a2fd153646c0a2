// The dense engine for channels-first tensors: every tile, tails in all dimensions, images smaller
// than a tile, the epilogue through shared memory.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "ops/conv/dense/dense_case.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(dense_nchw_wgmma)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::dense_nchw_wgmma);
constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
constexpr Arithmetic bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT};
constexpr Arithmetic tf32{KILN_DATA_FLOAT, KILN_MATH_TF32};
constexpr Arithmetic taken[] = {bf16, f16, tf32};

ConvolutionProblem nchw(const char* line, const Arithmetic& arithmetic = f16,
                        ConvolutionPass pass = ConvolutionPass::fprop) {
  return problem_in(line, arithmetic, KILN_TENSOR_NCHW, pass);
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

void check_tile(const DenseTile& tile, const OperationCase& item, const HostTensor& want) {
  const Proposal proposal =
      engine.propose(tile, std::get<ConvolutionProblem>(item.problem), device()->description());
  const std::string fault = difference(run_proposal(item, proposal), want);
  BOOST_TEST(fault.empty(), text_of(item.problem) << ", " << describe(tile) << ": " << fault);
}

// Checks some of the engine's tiles for the problem, which take turns from call to call.
void check(const OperationCase& item, std::size_t turn, std::size_t most = 3) {
  const auto answer = engine.candidates(item.problem, device()->description());
  const auto* candidates = std::get_if<std::vector<Candidate>>(&answer);
  BOOST_TEST_REQUIRE((candidates != nullptr),
                     text_of(item.problem) << reason(std::get<ConvolutionProblem>(item.problem)));
  const HostTensor want = item.expected();
  for (std::size_t i = 0; i < std::min(most, candidates->size()); ++i) {
    const Candidate& candidate = (*candidates)[(turn * most + i) % candidates->size()];
    check_tile(tile_of(engine, candidate, item.problem), item, want);
  }
}

// By its name, with all the workspace that it may ask for.
FinalizeOptions by_name() {
  return {.grant = {.only_engine = engine.name(), .workspace = most_workspace}};
}

}  // namespace

// Planes, channels and rows that end within a tile.
BOOST_AUTO_TEST_CASE(every_tile) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  const std::pair<ConvolutionPass, Arithmetic> all[] = {{ConvolutionPass::fprop, f16},
                                                        {ConvolutionPass::dgrad, bf16},
                                                        {ConvolutionPass::fprop, tf32},
                                                        {ConvolutionPass::dgrad, tf32}};
  for (const auto& [pass, arithmetic] : all) {
    const ConvolutionProblem problem = nchw("mb2ic72ih12iw26oc136kh1", arithmetic, pass);
    const OperationCase item = integers_of(problem);
    const HostTensor want = item.expected();
    const bool words = arithmetic.type == KILN_DATA_FLOAT;  // pixels go through registers
    for (const DenseTile& tile : all_laid(true, problem))
      if ((tile.pixels_left || !words) && share.takes(describe(tile), pass, words))
        check_tile(tile, item, want);
  }
}

// Tiles with one image and with several, a last tile with fewer images; one and three dimensions of
// space; any number of filters and channels.
BOOST_AUTO_TEST_CASE(planes) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"mb5ic136ih8oc80kh1", "mb9ic16ih4iw6oc24kh1", "mb3ic24iw40oc72kw1", "mb3ic104iw88oc8kw1",
        "mb2ic40id2ih6iw8oc16kd1kh1kw1", "mb1ic264ih4iw2oc200kh1", "mb2ic24ih10iw20oc37kh1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad})
      for (const Arithmetic& arithmetic : {taken[turn % 2], tf32}) {
        ConvolutionProblem problem = nchw(line, arithmetic, pass);
        if (!reason(problem).empty()) continue;  // dx of 37 filters, which are no vectors
        OperationCase item = integers_of(problem);
        if (turn % 4 > 1) {
          item.scalars = {.alpha = -2, .beta = 3};
          item.fill_integers(7, 2);
        }
        check(item, turn++, arithmetic.type == KILN_DATA_FLOAT ? 1 : 3);
      }
}

BOOST_AUTO_TEST_CASE(groups) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line : {"g2mb2ic128ih8iw9oc128kh1", "g3mb1ic96ih4iw10oc192kh1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      check(integers_of(nchw(line, taken[turn % 3], pass)), turn);
      ++turn;
    }
}

// alpha, beta, bias, activation; beta scales a residual or the previous output.
BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const Arithmetic& arithmetic : taken) {
    OperationCase fused(
        fused_in("mb2ic24ih14iw12oc72kh1", arithmetic, KILN_TENSOR_NCHW, KILN_TENSOR_NCHW));
    fused.scalars = {.alpha = 2, .beta = -1};
    fused.fill_integers(5, 2);
    for (int i = 0; i < 4; ++i) check(fused, turn++);
    fused.scalars = {.alpha = 1, .beta = 0};
    check(fused, turn++);
    OperationCase accumulated(nchw("mb5ic40ih4iw6oc24kh1", arithmetic, ConvolutionPass::dgrad));
    accumulated.scalars = {.alpha = -2, .beta = 3};
    accumulated.fill_integers(7, 2);
    check(accumulated, turn++);
  }
}

// Sums so long that they are promoted more than once.
BOOST_AUTO_TEST_CASE(long_sums) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, tf32})
    check(integers_of(nchw("mb1ic33000ih4iw4oc8kh1", arithmetic)), 0, 1);
}

// NaN and infinities reach the outputs that read them, and no others.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  for (const auto& [line, arithmetic] : {std::pair("mb3ic24ih6iw12oc24kh1", f16),
                                         {"mb3ic24ih6iw8oc24kh1", f16},
                                         {"mb3ic24ih6iw12oc24kh1", tf32}}) {
    OperationCase item = integers_of(nchw(line, arithmetic), 5);
    item["x"].at(20) = std::nan("");
    item["x"].at(800) = std::numeric_limits<double>::infinity();
    item["x"].at(item["x"].values.size() - 1) = -std::numeric_limits<double>::infinity();
    replace_zeros(item);
    check_integers(item, engine.name());
  }
}

// Random numbers against sums in double precision.
BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : taken)
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item(nchw("mb2ic136ih12iw10oc72kh1", arithmetic, pass));
      item.fill_uniform(3);
      const std::string fault = item.fault(item.run_plan(by_name()));
      BOOST_TEST(fault.empty(), fault);
    }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh1")) == "");
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh1", tf32)) == "");
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh1", {KILN_DATA_FLOAT, KILN_MATH_DEFAULT})) ==
             "the data type is f32; this engine takes f16, bf16 and, in TF32, f32");
  BOOST_TEST(reason(nchw("g4mb4ic32ih28oc64kh1", tf32)) ==
             "8 input channels a group, of f32; expected a multiple of 16");
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh3ph1")) == "the filter has 9 taps; expected one");
  for (const ConvolutionProblem& problem :
       {nchw("mb4ic32ih28oc64kh1ph1"), nchw("mb4ic32ih28oc64kh1sh2", f16, ConvolutionPass::dgrad)})
    BOOST_TEST(reason(problem) ==
               "padding or a stride, so that output pixels are not the input's pixels");
  BOOST_TEST(reason(nchw("mb4ic32ih14oc64kh1")) ==
             "the channel stride of x is 196; expected a multiple of 8, for copies of 16 bytes");
  BOOST_TEST(reason(nchw("mb4ic36ih28oc64kh1")) ==
             "in w neither channels nor filters are contiguous, in multiples of 16 bytes");
  BOOST_TEST(reason(problem_in("mb4ic32ih28oc64kh1", f16, KILN_TENSOR_NHWC)) ==
             "the pixels of a channel of x are not contiguous (width stride 1, no gaps), as "
             "channels-first layout has them");
}

BOOST_AUTO_TEST_SUITE_END()
